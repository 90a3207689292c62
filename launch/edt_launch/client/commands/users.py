"""``edt users``."""

import sys
from typing import Annotated

import typer

from edt_launch.client import model
from edt_launch.client.screen import Column, has_colours, moment, note, show, table, visible, width
from edt_launch.client.session import AsJson, connect, print_json

app = typer.Typer(
    invoke_without_command=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)


@app.callback(help="List users; add and remove them. For administrators.")
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
