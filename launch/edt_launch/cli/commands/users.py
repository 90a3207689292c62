"""``edt users``."""

import sys
from typing import Annotated

import typer

from edt_launch.cli import model
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import Column, has_colours, moment, note, show, table, visible, width
from edt_launch.cli.session import AsJson, connect, print_json

app = typer.Typer(
    invoke_without_command=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)


@app.callback(help="List users; add and remove them; set passwords. For administrators.")
def users(context: typer.Context, as_json: AsJson = False) -> None:
    """List them, unless a command follows."""
    if context.invoked_subcommand is None:
        _list(as_json)


@app.command("list")
def listing(as_json: AsJson = False) -> None:
    """List users."""
    _list(as_json)


@app.command()
def add(
    name: Annotated[str, typer.Argument(help="Letters, digits and dashes.")],
    is_admin: Annotated[bool, typer.Option("--admin", help="May do everything.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let somebody use the service; prints a token for them, which is shown only now."""
    answer = connect().add_user(name, is_admin=is_admin)
    if as_json:
        print_json(answer)
        return
    token = answer.get("token")
    if token:
        print(token)
        note(f"{name} may use the service with this token, in EDT_TOKEN or ~/.config/edt/config.toml")
        if answer.get("expires") is not None:
            note(f"it ends with yours: {moment(answer['expires'], 0.0)}")
    else:
        note(f"{name} may use the service; a token: edt tokens add --user {name}")


@app.command()
def remove(name: str, as_json: AsJson = False) -> None:
    """Let somebody no longer use the service."""
    connect().remove_user(name)
    if as_json:
        print_json({"removed": name})
    else:
        note(f"{name} may no longer use the service")


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
    connect().set_password(name, _read() if from_stdin else _asked(name), revoke_tokens=revoke_tokens)
    if as_json:
        print_json({"changed": name})
    else:
        over = "sessions that were begun with another one"
        note(f"{name} may log on with it; {f'{over}, and tokens,' if revoke_tokens else over} are over")


def _read() -> str:
    return sys.stdin.readline().rstrip("\r\n")


def _asked(name: str) -> str:
    """Ask for it twice, without showing it.

    Raises:
        MistakenError: they differ, or there is no terminal.
    """
    from getpass import getpass

    if not sys.stdin.isatty():
        raise MistakenError("there is no terminal to ask on", "give --password-stdin")
    first = getpass(f"New password of {name}: ")
    if first != getpass("Once more: "):
        raise MistakenError("these are two different ones", "try again")
    return first


def _list(as_json: bool) -> None:
    answer = connect().users()
    if as_json:
        print_json(answer)
        return
    heads = (Column("NAME", least=8), Column("ROLE"), Column("SINCE"))
    now = 0.0  # the date always
    rows = [
        (
            visible(one.get("name")),
            "admin" if one.get("is_admin") else "user",
            moment(one.get("created"), now),
        )
        for one in model.many(answer, "users")
    ]
    show(table(heads, rows, width(), has_colours(sys.stdout)))
