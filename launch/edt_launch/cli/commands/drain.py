"""``edt drain``."""

from typing import Annotated

import typer

from edt_launch.cli.screen import note
from edt_launch.cli.session import AsJson, complete_host, connect, print_json


def drain(
    host: Annotated[str, typer.Argument(metavar="HOST", help="Its name.", autocompletion=complete_host)],
    undo: Annotated[bool, typer.Option("--undo", help="Let workers come back.")] = False,
    as_json: AsJson = False,
) -> None:
    """Give a host no new workers, and move away those that it has. For administrators."""
    answer = connect().drain(host, undo=undo)
    if as_json:
        print_json(answer)
        return
    note(f"{answer.get('name', host)} {answer.get('state', 'up' if undo else 'draining')}")
