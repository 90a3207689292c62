"""``edt experiment``."""

import json
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from edt_launch.cli.commands.submit import collect
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import has_colours, note, show, width
from edt_launch.cli.session import AsJson, connect, print_json
from edt_launch.cli.submission_body import Submission, tell
from edt_launch.cli.tables import experiment_lines, experiments_table

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
)
LARGEST = 2**20
"""Bytes of a file that describes an experiment: the service takes no more in a field of a form."""

Name = Annotated[str, typer.Argument(metavar="EXPERIMENT", help="Its id or name.")]


@app.callback(help="Search for parameters; each trial is a job.")
def _experiment() -> None:
    pass


@app.command()
def create(
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="What to search, as JSON.")],
    code: Annotated[Path | None, typer.Option(help="The folder to copy, else this one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Create an experiment whose trials run in a copy of this folder; prints its id."""
    spec = read(file)
    service = connect()
    service.about()  # before anything is packed: is it there, and may we?
    job = spec.get("job")
    files = None if isinstance(job, dict) and job.get("path") else collect(code)
    if files is not None and not as_json:
        tell(files)
    answer = service.create_experiment(Submission(spec, files))
    if as_json:
        print_json(answer)
        return
    print(answer.get("id"))
    note(f"see: edt experiment show {answer.get('name')}, edt ps")


@app.command()
def ls(as_json: AsJson = False) -> None:
    """List all experiments, oldest first."""
    found = list(connect().experiments())
    if as_json:
        print_json({"experiments": found})
    else:
        show(experiments_table(found, time.time(), width(), has_colours(sys.stdout)))


@app.command("show")
def show_one(experiment: Name, as_json: AsJson = False) -> None:
    """Show an experiment and its trials, the best ones first."""
    answer = connect().experiment(experiment)
    if as_json:
        print_json(answer)
    else:
        show(experiment_lines(answer, width(), has_colours(sys.stdout)))


@app.command()
def stop(experiment: Name, as_json: AsJson = False) -> None:
    """Stop an experiment and its trials; what has finished stays."""
    answer = connect().stop_experiment(experiment)
    if as_json:
        print_json(answer)
    else:
        state = answer.get("state")
        is_live = state in ("queued", "running", "waiting")
        note(f"{answer.get('name')} is {'being stopped' if is_live else state}")


@app.command()
def rm(experiment: Name, as_json: AsJson = False) -> None:
    """Delete an experiment that has ended, with its trials' jobs and files."""
    connect().remove_experiment(experiment)
    if as_json:
        print_json({"removed": experiment})
    else:
        note(f"{experiment} is deleted")


def read(file: Path) -> dict[str, Any]:
    """The description of an experiment.

    Raises:
        MistakenError: it cannot be read, or is no JSON object.
    """
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
        raise MistakenError(f"{file} is no JSON object", "see docs/experiments.md")
    return spec
