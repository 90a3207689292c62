"""``edt tokens``."""

import re
import sys
import time
from typing import Annotated, Any

import typer

from edt_launch.cli import model
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import Column, has_colours, moment, note, show, table, visible, width
from edt_launch.cli.session import AsJson, connect, print_json

app = typer.Typer(
    invoke_without_command=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
UNITS = {"m": 60, "h": 3600, "d": 86400}


@app.callback(help="List your tokens; make and revoke them.")
def tokens(context: typer.Context, as_json: AsJson = False) -> None:
    """List them, unless a command follows."""
    if context.invoked_subcommand is None:
        _list(as_json)


@app.command("list")
def listing(as_json: AsJson = False) -> None:
    """List your tokens."""
    _list(as_json)


@app.command()
def add(
    name: Annotated[str, typer.Option(help="What it is for.")] = "edt",
    lasts: Annotated[
        str | None, typer.Option(help="Such as 12h or 30d, else as long as the token that asks.")
    ] = None,
    user: Annotated[str | None, typer.Option(help="For somebody else; for administrators.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it; it is shown only now."""
    content: dict[str, Any] = {"name": name}
    if lasts is not None:
        content["expires"] = time.time() + seconds(lasts)
    if user is not None:
        content["user"] = user
    answer = connect().add_token(content)
    if as_json:
        print_json(answer)
        return
    print(answer.get("token"))
    if answer.get("expires") != content.get("expires"):
        note(f"it ends with the token that it was made with: {moment(answer.get('expires'), 0.0)}")
    note("use it in EDT_TOKEN or ~/.config/edt/config.toml; it is not shown again")


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(metavar="ID")],
    only: Annotated[bool, typer.Option("--only", help="Leave the tokens that were made with it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let a token open nothing any more, nor the tokens that were made with it."""
    connect().remove_token(token, only=only)
    if as_json:
        print_json({"revoked": token})
    else:
        note(f"{token} is revoked")


def seconds(text: str) -> float:
    """A duration such as 12h in seconds.

    Raises:
        MistakenError: it is none.
    """
    found = re.fullmatch(r"(\d{1,6})([mhd])", text)
    if found is None:
        raise MistakenError(f"--lasts {text}: expected a duration such as 30m, 12h or 30d")
    return float(int(found[1]) * UNITS[found[2]])


def _list(as_json: bool) -> None:
    answer = connect().tokens()
    if as_json:
        print_json(answer)
        return
    heads = (
        Column("ID"),
        Column("NAME", least=8),
        Column("USER", least=5),
        Column("MADE", optional=True),
        Column("UNTIL"),
    )
    rows = [
        (
            visible(one.get("id")),
            visible(one.get("name") or "-"),
            visible(one.get("user") or "-"),
            moment(one.get("created"), 0.0),
            "revoked" if one.get("revoked") else moment(one.get("expires"), 0.0),
        )
        for one in model.many(answer, "tokens")
    ]
    show(table(heads, rows, width(), has_colours(sys.stdout)))
