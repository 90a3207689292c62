"""``edt experiment``."""

from typing import Annotated

from typer import Argument

from edt_launch.cli.errors import MistakenError


def experiment(words: Annotated[list[str] | None, Argument(metavar="...")] = None) -> None:
    """Say how searches for parameters are called now."""
    raise MistakenError(
        f"searches for parameters are no longer called experiments: edt experiment {' '.join(words or ())}",
        "use edt search create FILE.json, or ls, show, stop and rm of edt search",
    )
