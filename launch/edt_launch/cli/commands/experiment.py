"""``edt experiment``."""

import os
import re
import secrets
import time
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from edt_launch.cli.client.service import Json, Service
from edt_launch.cli.commands.submit import check_command, collect, environment
from edt_launch.cli.errors import ClientError, MistakenError
from edt_launch.cli.packing import Code, Submission, tell
from edt_launch.cli.screen import note, terminal
from edt_launch.cli.session import AsJson, answer, confirm, connect, group, print_json
from edt_launch.cli.terminal.experiment_tables import (
    comparison_lines,
    experiment_lines,
    experiments_table,
    preview_lines,
)

app = group(no_args_is_help=True, help="Run training definitions of a project, and compare the runs.")

Name = Annotated[str, Argument(metavar="EXPERIMENT", help="Id, name, or PROJECT/NAME.")]
Command = Annotated[list[str] | None, Argument(metavar="-- COMMAND...")]
Variables = Annotated[
    list[str] | None,
    Option(
        "--env",
        metavar="NAME[=VALUE]",
        help="Environment variable for the job; without a value, the present one is passed on.",
    ),
]


@app.command()
def create(
    name: Annotated[str, Argument(help="Name, unique in the project.")],
    command: Command = None,
    project: Annotated[str | None, Option(help="Id or name.")] = None,
    description: Annotated[str, Option(help="Description.")] = "",
    source: Annotated[
        str, Option(help="Data folder, relative to the service's; the job finds it in DATA_DIR.")
    ] = "",
    metric: Annotated[str, Option(help="Metric by which runs are compared. Default: the loss.")] = "",
    objective: Annotated[
        str | None,
        Option(metavar="minimize|maximize", help="Which values are better. Default: by the metric's name."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make an experiment; prints its id. COMMAND takes the place of its definitions' commands."""
    if project is None:
        if name.endswith(".json"):
            raise MistakenError(
                f"edt experiment create makes an experiment of a project, and reads no file such as {name}",
                f"search for parameters with: edt search create {name}",
            )
        raise MistakenError("--project is missing", "see: edt project ls, edt project create NAME")
    content = {
        "project": project, "name": name, "description": description, "source": source,
        "command": command or [], "metric": metric, "objective": objective,
    }  # fmt: skip
    data = connect().call("POST", "experiments", content=content)
    if as_json:
        print_json(data)
        return
    print(data.get("id"))
    note(f"see: edt experiment add {data.get('id')} NAME -- python train.py")


@app.command()
def add(
    experiment: Name,
    name: Annotated[str, Argument(help="Name of a training definition of the project; created if new.")],
    command: Command = None,
    code: Annotated[
        Path | None, Option(help="Folder of its code. Default for a new one: this folder.")
    ] = None,
    framework: Annotated[
        str | None, Option(help="Horovod (default, for scripts), edtPyTorch, distPyTorch or PyTorch.")
    ] = None,
    description: Annotated[str, Option(help="Description, for a new one.")] = "",
    kind: Annotated[
        str, Option("--type", metavar="Elastic|Distributed|Single", help="Type of distribution.")
    ] = "Elastic",
    least: Annotated[int | None, Option("--min", min=1, help="Minimum number of nodes.")] = None,
    most: Annotated[
        int | None, Option("--max", min=1, help="Maximum number of nodes. Default: --min.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Add a training definition to an experiment, or change how it is run there; prints its id.

    Of a definition that is there already, --code makes a new version.
    """
    service = connect()
    found = _found(service, experiment)
    known = next(service.pages("definitions", project=str(found["project"]), name=name), None)
    is_new = known is None
    if known is not None and (command or framework or description):
        raise MistakenError(
            f"there is a training definition {name!r} already, which has its own command and framework",
            "leave them out, or give another name",
        )
    if known is None and not command and not found.get("command"):
        raise MistakenError(
            f"neither {name} nor the experiment has a command", "give one: -- python train.py"
        )
    if known is None or code is not None:
        files = collect(code)
        if command:
            check_command(command, files, "", framework)
        if not as_json:
            tell(files)
        if known is None:
            spec = {"project": found["project"], "name": name, "command": command or []}
            spec |= {"description": description} | ({"framework": framework} if framework else {})
            known = service.call("POST", "definitions", body=Submission(spec, files), timeout=None)
        else:
            known = _with_code(service, str(known["id"]), files)
    one = {"definition": known["id"], "distribution": kind, "min": least, "max": most}
    others = [
        {key: training[key] for key in ("definition", "distribution", "min", "max")}
        for training in found.get("trainings") or ()
        if training["definition"] != known["id"]
    ]
    headers = {"If-Match": f'"{found["version"]}"'}
    changes = {"trainings": [*others, one]}
    try:
        data = service.call("PATCH", "experiments", str(found["id"]), content=changes, headers=headers)
    except ClientError:
        if is_new:  # it would be in the way of the next attempt
            service.order("DELETE", "definitions", str(known["id"]))
        raise
    if as_json:
        print_json({"experiment": data, "definition": known})
        return
    print(known["id"])
    note(f"see: edt experiment run {data['id']} --dry-run")


@app.command()
def run(
    experiment: Name,
    command: Command = None,
    definitions: Annotated[
        list[str] | None, Option("--definition", help="Only this one, by id or name. Repeatable.")
    ] = None,
    variables: Variables = None,
    name: Annotated[str, Option(help="Name of the jobs. Default: those of the definitions.")] = "",
    priority: Annotated[int, Option(help="Priority; higher ones are served first.")] = 0,
    again: Annotated[str | None, Option(metavar="RUN", help="Start this run again.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show which jobs would grow and shrink.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start an experiment: a job for each of its training definitions; prints the jobs' ids."""
    service = connect()
    found = _found(service, experiment)
    query = {"dry_run": dry_run or None}
    headers = {"Idempotency-Key": secrets.token_hex(16)}
    if again is not None:
        if command or definitions or variables or name or priority:
            raise MistakenError("--again starts a run as it was", "leave the other options out")
        data = service.call("POST", "runs", again, "again", query=query, headers=headers, timeout=None)
    else:
        wanted = {
            "command": command or [], "environment": environment(variables or (), os.environ) or {},
            "name": name, "priority": priority, "definitions": _chosen(found, definitions),
        }  # fmt: skip
        parts = ("experiments", str(found["id"]), "runs")
        data = service.call("POST", *parts, content=wanted, query=query, headers=headers, timeout=None)
    if dry_run:
        answer(data, as_json, lambda: preview_lines(data))
        return
    if as_json:
        print_json(data)
        return
    for one in data.get("runs") or ():
        print(one["job"])
    note(f"see: edt experiment show {found['id']}, edt experiment compare {found['id']}")


@app.command()
def compare(
    experiment: Name,
    runs: Annotated[list[str] | None, Argument(metavar="[RUN...]", help="Ids of runs, or of jobs.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show runs beside each other: values, the best ones marked, device-hours, and what differs."""
    service = connect()
    found = _found(service, experiment)
    query = {"run": _run_ids(service, str(found["id"]), runs)} if runs else {}
    data = service.call("GET", "experiments", str(found["id"]), "comparison", query=query)
    answer(data, as_json, lambda: comparison_lines(data, *terminal()))


@app.command()
def ls(
    project: Annotated[str | None, Option(help="Only of this one, by id or name.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the experiments of your projects, oldest first."""
    listed = list(connect().pages("experiments", project=project))
    answer({"experiments": listed}, as_json, lambda: experiments_table(listed, time.time(), *terminal()))


@app.command()
def show(experiment: Name, as_json: AsJson = False) -> None:
    """Show an experiment, its training definitions, and its newest 100 runs."""
    service = connect()
    found = _found(service, experiment)
    runs = service.call("GET", "experiments", str(found["id"]), "runs").get("runs") or []
    answer(found | {"runs": runs}, as_json, lambda: experiment_lines(found, runs, time.time(), *terminal()))


@app.command()
def rm(experiment: Name, as_json: AsJson = False) -> None:
    """Delete an experiment whose runs have ended; their jobs stay."""
    service = connect()
    found = _found(service, experiment)
    service.order("DELETE", "experiments", str(found["id"]))
    confirm({"removed": found["id"]}, as_json, f"{found['name']} is deleted; jobs of its runs stay")


def _found(service: Service, text: str) -> Json:
    """The experiment of an id, of a name that only one has, or of PROJECT/NAME."""
    if re.fullmatch("x[a-z2-7]{8}", text):
        return service.call("GET", "experiments", text)
    found = list(service.pages("experiments", name=text))
    if not found and "/" in text:
        project, _, name = text.partition("/")
        found = list(service.pages("experiments", project=project, name=name))
    if not found:
        raise MistakenError(f"there is no experiment {text!r}", "see: edt experiment ls")
    if len(found) > 1:
        ids = ", ".join(str(one["id"]) for one in found[:5])
        raise MistakenError(f"{text!r} may be any of {len(found)} experiments: {ids}", "give the id")
    return service.call("GET", "experiments", str(found[0]["id"]))


def _chosen(experiment: Json, wanted: list[str] | None) -> list[str] | None:
    """The ids of an experiment's training definitions, from ids and names."""
    if not wanted:
        return None
    known = {
        str(one[key]): str(one["definition"])
        for one in experiment["trainings"]
        for key in ("name", "definition")
    }
    if missing := [name for name in wanted if name not in known]:
        names = ", ".join(str(one["name"]) for one in experiment["trainings"]) or "none"
        raise MistakenError(f"--definition {missing[0]}: {experiment['name']} has {names}", "add it first")
    return [known[name] for name in wanted]


def _run_ids(service: Service, experiment: str, wanted: list[str]) -> list[str]:
    """The ids of runs, from those and from ids of jobs."""
    jobs = [text for text in wanted if text.startswith("j")]
    if not jobs:
        return wanted
    runs: list[Any] = []
    before: str | None = None
    while True:
        page = service.call("GET", "experiments", experiment, "runs", query={"before": before})
        runs += page["runs"]
        before = page["next"]
        if before is None:
            break
    known = {str(run["job"]): str(run["id"]) for run in runs}
    return [known.get(text, text) for text in wanted]


def _with_code(service: Service, definition: str, files: Code) -> Json:
    body = Submission({}, files)
    return service.call("POST", "definitions", definition, "code", body=body, timeout=None)
