"""``edt tokens``."""

import re
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from edt_launch.cli import model
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import Column, moment, note, table, terminal, visible
from edt_launch.cli.session import AsJson, answer, confirm, connect, group, print_json

app = group(invoke_without_command=True)
UNITS = {"m": 60, "h": 3600, "d": 86400}
HEADS = (
    Column("ID"),
    Column("NAME", least=8),
    Column("USER", least=5),
    Column("MADE", optional=True),
    Column("UNTIL"),
)


@app.callback(help="List your tokens; make and revoke them.")
def tokens(context: typer.Context, as_json: AsJson = False) -> None:
    """List them, unless a command follows."""
    if context.invoked_subcommand is None:
        listing(as_json)


@app.command("list")
def listing(as_json: AsJson = False) -> None:
    """List your tokens."""
    data = connect().call("GET", "tokens")
    answer(data, as_json, lambda: table(HEADS, map(_row, model.many(data, "tokens")), *terminal()))


def _row(token: Mapping[str, Any]) -> tuple[str, ...]:
    until = "revoked" if token.get("revoked") else moment(token.get("expires"), 0.0)
    names = (visible(token.get("name") or "-"), visible(token.get("user") or "-"))
    return visible(token.get("id")), *names, moment(token.get("created"), 0.0), until


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
        content["expires"] = time.time() + _seconds(lasts)
    if user is not None:
        content["user"] = user
    data = connect().call("POST", "tokens", content=content)
    if as_json:
        print_json(data)
        return
    print(data.get("token"))
    if data.get("expires") != content.get("expires"):
        note(f"it ends with the token that it was made with: {moment(data.get('expires'), 0.0)}")
    note("use it in EDT_TOKEN or ~/.config/edt/config.toml; it is not shown again")


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(metavar="ID")],
    only: Annotated[bool, typer.Option("--only", help="Leave the tokens that were made with it.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let a token open nothing any more, nor the tokens that were made with it."""
    connect().order("DELETE", "tokens", token, query={"only": only or None})
    confirm({"revoked": token}, as_json, f"{token} is revoked")


def _seconds(text: str) -> float:
    duration = re.fullmatch(r"(\d{1,6})([mhd])", text)
    if duration is None:
        raise MistakenError(f"--lasts {text}: expected a duration such as 30m, 12h or 30d")
    return float(int(duration[1]) * UNITS[duration[2]])
