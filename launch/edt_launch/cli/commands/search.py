"""``edt search``."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from edt_launch.cli.commands.submit import collect
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.packing import Submission, tell
from edt_launch.cli.screen import note, terminal
from edt_launch.cli.session import AsJson, answer, confirm, connect, group, print_json
from edt_launch.cli.terminal.tables import search_lines, searches_table

app = group(no_args_is_help=True, help="Search for parameters; each trial is a job.")
LARGEST = 2**20
"""Bytes of a file that describes a search: the service takes no more in a field of a form."""

Name = Annotated[str, Argument(metavar="SEARCH", help="Id or name.")]


@app.command()
def create(
    file: Annotated[Path, Argument(metavar="FILE.json", help="JSON file with the definition of the search.")],
    code: Annotated[Path | None, Option(help="Folder to copy. Default: this one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Create a search whose trials run in a copy of this folder; prints its id."""
    spec = _read(file)
    service = connect()
    service.about()  # before anything is packed: is it there, and may we?
    job = spec.get("job")
    files = None if isinstance(job, dict) and job.get("path") else collect(code)
    if files is not None and not as_json:
        tell(files)
    body = Submission(spec, files)
    data = service.call("POST", "searches", body=body, timeout=None)
    if as_json:
        print_json(data)
        return
    print(data.get("id"))
    note(f"see: edt search show {data.get('name')}, edt ps")


@app.command()
def ls(as_json: AsJson = False) -> None:
    """List all searches, oldest first."""
    listed = list(connect().pages("searches"))
    answer({"searches": listed}, as_json, lambda: searches_table(listed, time.time(), *terminal()))


@app.command()
def show(search: Name, as_json: AsJson = False) -> None:
    """Show a search and its trials, the best ones first."""
    data = connect().call("GET", "searches", search)
    answer(data, as_json, lambda: search_lines(data, *terminal()))


@app.command()
def stop(search: Name, as_json: AsJson = False) -> None:
    """Stop a search and its trials; what has finished stays."""
    data = connect().call("POST", "searches", search, "stop")
    state = data.get("state")
    is_live = state in ("queued", "running", "waiting")
    confirm(data, as_json, f"{data.get('name')} is {'being stopped' if is_live else state}")


@app.command()
def restart(search: Name, as_json: AsJson = False) -> None:
    """Have one go on that was stopped or has failed; trials that have finished stay."""
    data = connect().call("POST", "searches", search, "restart")
    confirm(data, as_json, f"{data.get('name')} goes on")


@app.command()
def run_best(search: Name, as_json: AsJson = False) -> None:
    """Run the job of the best trial again; prints the new job's id."""
    data = connect().call("POST", "searches", search, "run-best")
    confirm(data, as_json, str(data.get("id")))


@app.command()
def rm(search: Name, as_json: AsJson = False) -> None:
    """Delete a search that has ended, with its trials' jobs and files."""
    connect().order("DELETE", "searches", search)
    confirm({"removed": search}, as_json, f"{search} is deleted")


def _read(file: Path) -> dict[str, Any]:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST + 1)
    except OSError as error:
        raise MistakenError(f"{file} cannot be read: {error.strerror}") from None
    if len(content) > LARGEST:
        raise MistakenError(f"{file} has more than {LARGEST:,} bytes")
    try:
        spec = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise MistakenError(f"{file} is no JSON: {error}") from None
    if not isinstance(spec, dict):
        raise MistakenError(f"{file} is no JSON object", "see docs/how-to/searches.md")
    return spec
