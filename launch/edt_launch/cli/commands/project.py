"""``edt project``."""

import time
from typing import Annotated

from typer import Argument, Option

from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import note, terminal
from edt_launch.cli.session import AsJson, answer, confirm, connect, group, print_json
from edt_launch.cli.terminal.experiment_tables import members_table, project_lines, projects_table

app = group(no_args_is_help=True, help="Share experiments with others: projects and their members.")

Name = Annotated[str, Argument(metavar="PROJECT", help="Id or name.")]
Description = Annotated[str, Option(help="Description.")]


@app.command()
def create(
    name: Annotated[str, Argument(help="Name, unique among projects.")],
    description: Description = "",
    as_json: AsJson = False,
) -> None:
    """Make a project, which is yours; prints its id."""
    data = connect().call("POST", "projects", content={"name": name, "description": description})
    if as_json:
        print_json(data)
        return
    print(data.get("id"))
    note(f"see: edt project members {name} USER --role editor, edt experiment create NAME --project {name}")


@app.command()
def ls(as_json: AsJson = False) -> None:
    """List the projects that you are a member of, oldest first."""
    listed = list(connect().pages("projects"))
    answer({"projects": listed}, as_json, lambda: projects_table(listed, time.time(), *terminal()))


@app.command()
def show(project: Name, as_json: AsJson = False) -> None:
    """Show a project and its members."""
    data = connect().call("GET", "projects", project)
    answer(data, as_json, lambda: project_lines(data, *terminal()))


@app.command()
def members(
    project: Name,
    user: Annotated[
        str | None, Argument(help="Member to add, change or remove. Without it, all are listed.")
    ] = None,
    role: Annotated[
        str | None,
        Option(
            metavar="viewer|editor|manager",
            help="viewer: read; editor: also start runs; manager: also add members.",
        ),
    ] = None,
    remove: Annotated[bool, Option("--remove", help="Remove the member.")] = False,
    as_json: AsJson = False,
) -> None:
    """List a project's members; with USER, add them or give them another role, or remove them."""
    service = connect()
    if user is None or (role is None and not remove):
        if user is not None or role is not None or remove:
            raise MistakenError("USER goes with --role or --remove", "name a user, and one of them")
        data = service.call("GET", "projects", project)
        answer(data, as_json, lambda: members_table(data, *terminal()))
    elif remove:
        if role is not None:
            raise MistakenError("--role and --remove are both given", "give one of them")
        service.order("DELETE", "projects", project, "members", user)
        confirm({"removed": user}, as_json, f"{user} is no longer a member of {project}")
    else:
        data = service.call("PUT", "projects", project, "members", user, content={"role": role})
        confirm(data, as_json, f"{user} is a member of {project}: {role}")


@app.command()
def rm(project: Name, as_json: AsJson = False) -> None:
    """Delete a project that has neither experiments nor training definitions."""
    connect().order("DELETE", "projects", project)
    confirm({"removed": project}, as_json, f"{project} is deleted")
