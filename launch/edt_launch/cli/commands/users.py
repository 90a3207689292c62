"""``edt users``."""

import sys
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from edt_launch.cli import model
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import Column, moment, note, table, terminal, visible
from edt_launch.cli.session import AsJson, answer, confirm, connect, group, print_json

app = group(invoke_without_command=True)
HEADS = (Column("NAME", least=8), Column("ROLE"), Column("SINCE"))


@app.callback(help="List users; add and remove them; set passwords. For administrators.")
def users(context: typer.Context, as_json: AsJson = False) -> None:
    """List them, unless a command follows."""
    if context.invoked_subcommand is None:
        listing(as_json)


@app.command("list")
def listing(as_json: AsJson = False) -> None:
    """List users."""
    data = connect().call("GET", "users")
    answer(data, as_json, lambda: table(HEADS, map(_row, model.many(data, "users")), *terminal()))


def _row(user: Mapping[str, Any]) -> tuple[str, ...]:
    role = "admin" if user.get("is_admin") else "user"
    return visible(user.get("name")), role, moment(user.get("created"), 0.0)  # the date always


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Letters, digits and dashes.")],
    is_admin: Annotated[bool, typer.Option("--admin", help="May do everything.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let somebody use the service; prints a token for them, which is shown only now."""
    data = connect().call("POST", "users", content={"name": name, "is_admin": is_admin})
    if as_json:
        print_json(data)
    elif token := data.get("token"):
        print(token)
        note(f"{name} may use the service with this token, in EDT_TOKEN or ~/.config/edt/config.toml")
        if data.get("expires") is not None:
            note(f"it ends with yours: {moment(data['expires'], 0.0)}")
    else:
        note(f"{name} may use the service; a token: edt tokens add --user {name}")


@app.command()
def remove(name: str, as_json: AsJson = False) -> None:
    """Let somebody no longer use the service."""
    connect().order("DELETE", "users", name)
    confirm({"removed": name}, as_json, f"{name} may no longer use the service")


@app.command()
def password(
    name: str,
    from_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read it from standard input instead of asking.")
    ] = False,
    revoke_tokens: Annotated[
        bool, typer.Option("--revoke-tokens", help="Revoke all other tokens of the user, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Set a password for WMLA's interfaces: one's own, or for administrators anybody's."""
    service = connect()
    content = {"password": sys.stdin.readline().rstrip("\r\n") if from_stdin else _asked(name)}
    revoked = {"revoke_tokens": True} if revoke_tokens else {}
    service.order("PUT", "users", name, "password", content=content | revoked)
    over = "sessions that were begun with another one" + (", and tokens," if revoke_tokens else "")
    confirm({"changed": name}, as_json, f"{name} may log on with it; {over} are over")


def _asked(name: str) -> str:
    """Ask for it twice, without showing it."""
    from getpass import getpass

    if not sys.stdin.isatty():
        raise MistakenError("there is no terminal to ask on", "give --password-stdin")
    first = getpass(f"New password of {name}: ")
    if first != getpass("Once more: "):
        raise MistakenError("these are two different ones", "try again")
    return first
