"""``edt users`` and ``edt tokens``."""

import re
import sys
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from typer import Argument, Option

from edt_launch.cli import model
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import Column, Columns, listing, moment, note, terminal
from edt_launch.cli.session import AsJson, answer, confirm, connect, group, print_json
from edt_launch.core.text.terminal_text import visible

users, tokens = group(invoke_without_command=True), group(invoke_without_command=True)
USER_COLUMNS: Columns[Mapping[str, Any]] = {
    Column("NAME", least=8): lambda user: visible(user.get("name")),
    Column("ROLE"): lambda user: "admin" if user.get("is_admin") else "user",
    Column("SINCE"): lambda user: moment(user.get("created"), 0.0),  # the date always
}


@users.callback(help="List, add and remove users, and set passwords. Administrators only.")
def _users(context: typer.Context, as_json: AsJson = False) -> None:
    """List them, unless a command follows."""
    if context.invoked_subcommand is None:
        list_users(as_json)


@users.command("list")
def list_users(as_json: AsJson = False) -> None:
    """List users."""
    data = connect().call("GET", "users")
    answer(data, as_json, lambda: listing(USER_COLUMNS, model.many(data, "users"), *terminal()))


@users.command("add")
def add_user(
    name: Annotated[str, Argument(help="Letters, digits and dashes.")],
    is_admin: Annotated[bool, Option("--admin", help="Make the user an administrator.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let somebody use the service; prints a token for them, which is shown only now."""
    data = connect().call("POST", "users", content={"name": name, "is_admin": is_admin})
    if as_json:
        print_json(data)
        return
    print(data["token"])
    note(f"{name} may use the service with this token, in EDT_TOKEN or ~/.config/edt/config.toml")
    if data.get("expires") is not None:
        note(f"it ends with yours: {moment(data['expires'], 0.0)}")


@users.command("remove")
def remove_user(name: str, as_json: AsJson = False) -> None:
    """Let somebody no longer use the service."""
    connect().order("DELETE", "users", name)
    confirm({"removed": name}, as_json, f"{name} may no longer use the service")


@users.command()
def password(
    name: str,
    from_stdin: Annotated[
        bool, Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
    revoke_tokens: Annotated[
        bool, Option("--revoke-tokens", help="Also revoke all other tokens of the user.")
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


UNITS = {"m": 60, "h": 3600, "d": 86400}
TOKEN_COLUMNS: Columns[Mapping[str, Any]] = {
    Column("ID"): lambda token: visible(token.get("id")),
    Column("NAME", least=8): lambda token: visible(token.get("name") or "-"),
    Column("USER", least=5): lambda token: visible(token.get("user") or "-"),
    Column("MADE", optional=True): lambda token: moment(token.get("created"), 0.0),
    Column("MAY", optional=True): lambda token: visible(token.get("scope")),
    Column("USED", optional=True): lambda token: moment(token.get("used"), 0.0),
    Column("UNTIL"): lambda token: "revoked" if token.get("revoked") else moment(token.get("expires"), 0.0),
}


@tokens.callback(help="List, create and revoke your tokens.")
def _tokens(context: typer.Context, as_json: AsJson = False) -> None:
    """List them, unless a command follows."""
    if context.invoked_subcommand is None:
        list_tokens(as_json)


@tokens.command("list")
def list_tokens(as_json: AsJson = False) -> None:
    """List your tokens."""
    data = connect().call("GET", "tokens")
    answer(data, as_json, lambda: listing(TOKEN_COLUMNS, model.many(data, "tokens"), *terminal()))


@tokens.command("add")
def add_token(
    name: Annotated[str, Option(help="Purpose, shown in lists.")] = "edt",
    lasts: Annotated[
        str | None, Option(help="Lifetime, such as 12h or 30d. Default: that of the present token.")
    ] = None,
    user: Annotated[str | None, Option(help="Make it for this user. Administrators only.")] = None,
    is_read: Annotated[bool, Option("--read", help="Make it read-only.")] = False,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it; it is shown only now."""
    content: dict[str, Any] = {"name": name}
    if lasts is not None:
        content["expires"] = time.time() + _seconds(lasts)
    if user is not None:
        content["user"] = user
    if is_read:
        content["scope"] = "read"
    data = connect().call("POST", "tokens", content=content)
    if as_json:
        print_json(data)
        return
    print(data.get("token"))
    if data.get("expires") != content.get("expires"):
        note(f"it ends with the token that it was made with: {moment(data.get('expires'), 0.0)}")
    note("use it in EDT_TOKEN or ~/.config/edt/config.toml; it is not shown again")


@tokens.command("revoke")
def revoke_token(
    token: Annotated[str, Argument(metavar="ID")],
    only: Annotated[bool, Option("--only", help="Keep tokens that were made with it.")] = False,
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
