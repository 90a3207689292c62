"""``edt submit``."""

import json
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from edt_launch.cli import model, packing
from edt_launch.cli.arrays import Indices, indices
from edt_launch.cli.client.service import Json, Service
from edt_launch.cli.errors import ExitCode, MistakenError, UnreachableError
from edt_launch.cli.model import ListedJob
from edt_launch.cli.packing import Code, Submission, tell
from edt_launch.cli.screen import note, plural, terminal
from edt_launch.cli.session import AsJson, answer, connect, print_json
from edt_launch.cli.terminal.tables import changes_table
from edt_launch.cli.times import start_time
from edt_launch.cli.times import time_limit as limit_of
from edt_launch.core.scripts import needed_script, script_name, script_problem
from edt_launch.core.system.home_directory import expanded
from edt_launch.core.text.durations import duration
from edt_launch.core.text.terminal_text import visible
from edt_launch.core.text.written import words

NEWEST = "newest"
"""Stands for a job's newest checkpoint."""

PAUSES = (0.5, 2.0, 5.0)  # seconds before another attempt to submit, after a connection broke


def submit(
    command: Annotated[
        list[str], Argument(metavar="COMMAND...", help="For example: python train.py --lr 0.1")
    ],
    least: Annotated[int, Option("--min", min=1, help="Minimum number of workers.")] = 1,
    most: Annotated[
        int | None,
        Option("--max", min=1, help="Maximum number of workers. Default: --min."),
    ] = None,
    name: Annotated[str | None, Option(help="Name of the job. Default: that of the script.")] = None,
    tags: Annotated[
        str | None, Option(metavar="TAG,...", help="Tags to find it by, separated by commas.")
    ] = None,
    comment: Annotated[str | None, Option(help="A remark, shown with the job.")] = None,
    priority: Annotated[int | None, Option(help="Priority; higher ones are served first.")] = None,
    weight: Annotated[float | None, Option(help="Weight of its share, relative to your other jobs.")] = None,
    allowed: Annotated[str | None, Option(metavar="N,N,...", help="Allowed numbers of workers.")] = None,
    variables: Annotated[
        list[str] | None,
        Option(
            "--env",
            metavar="NAME[=VALUE]",
            help="Environment variable for the job; without a value, the present one is passed on.",
        ),
    ] = None,
    code: Annotated[Path | None, Option(help="Folder to copy. Default: this one.")] = None,
    path: Annotated[str | None, Option(help="Copy this folder of the service's machine instead.")] = None,
    code_of: Annotated[
        str | None, Option(metavar="JOB", help="Use the files submitted with this job instead.")
    ] = None,
    checkpoint: Annotated[
        str | None, Option(metavar="NAME", help="Start from this checkpoint of --code-of, or from newest.")
    ] = None,
    directory: Annotated[str | None, Option(help="Working directory, a folder inside the code.")] = None,
    checkpoint_interval: Annotated[float | None, Option(help="Seconds between checkpoints.")] = None,
    max_restarts: Annotated[
        int | None, Option(min=0, help="Restarts allowed after the loss of all workers.")
    ] = None,
    grace: Annotated[
        float | None,
        Option(min=0, help="Seconds between SIGTERM and SIGKILL when it is stopped. Default: 30."),
    ] = None,
    no_warm_start: Annotated[
        bool, Option("--no-warm-start", help="Do not fork workers from a process that has imported torch.")
    ] = False,
    restartable: Annotated[
        bool,
        Option(
            "--restartable", help="Allow it to be ended and started over although it cannot save its work."
        ),
    ] = False,
    no_preempt: Annotated[
        bool, Option("--no-preempt", help="Once started, keep its minimum whatever else is queued.")
    ] = False,
    time_limit: Annotated[
        str | None, Option("--time", help="Time limit: minutes, HH:MM:SS or D-HH:MM.")
    ] = None,
    begin: Annotated[
        str | None,
        Option(metavar="TIME", help="Earliest start: 2h, 22:30 or 2026-03-01T12:30."),
    ] = None,
    after: Annotated[
        str | None, Option(metavar="JOB,...", help="Start after these jobs have succeeded.")
    ] = None,
    array: Annotated[
        str | None,
        Option(metavar="1-20%4", help="Jobs with EDT_ARRAY_INDEX from 1 to 20, at most 4 at a time."),
    ] = None,
    framework: Annotated[
        str | None,
        Option(
            help="torchrun: COMMAND is its options and program. edtPyTorch, PyTorch, distPyTorch: "
            "a WMLA program; COMMAND is its script."
        ),
    ] = None,
    data_dir: Annotated[str | None, Option(help="DATA_DIR of a WMLA program.")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show which jobs would grow and shrink.")] = False,
    follow: Annotated[bool, Option("--follow", "-f", help="Show its output until it ends.")] = False,
    wait: Annotated[
        bool, Option("--wait", "-W", help="Wait until it ends, without showing its output.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Queue a job that runs COMMAND in a copy of this folder; prints its id.

    What .edtignore names (in the syntax of .gitignore) is not copied. Later edits do not change a queued job.
    With --follow and --wait the exit code is the job's own, or 1 if it failed without one.
    """
    spec = {
        "name": name or script_name(command), "tags": words(tags), "comment": comment,
        "command": command, "path": path, "directory": directory,
        "min": least, "max": most, "allowed": numbers(allowed), "priority": priority, "weight": weight,
        "environment": environment(variables or (), os.environ),
        "checkpoint_interval": checkpoint_interval, "max_restarts": max_restarts,
        "framework": framework, "data_dir": data_dir,
        "grace": grace, "warm_start": False if no_warm_start else None,
        "begin": start_time("--begin", begin, time.time()),
        "time_limit": limit_of("--time", time_limit),
        "restartable": restartable or None, "preemptible": False if no_preempt else None,
    }  # fmt: skip
    if most is not None and most < least:
        raise MistakenError(f"--max {most} is less than --min {least}", "give a --max of at least --min")
    sources = {"--code": code, "--path": path, "--code-of": code_of}
    given = [option for option, source in sources.items() if source is not None]
    if len(given) > 1:
        raise MistakenError(f"{' and '.join(given)} both say where the code is", "give one of them")
    if checkpoint is not None and code_of is None:
        raise MistakenError(f"--checkpoint {checkpoint}: of which job?", "give the job with --code-of")
    wanted = _indices(array, follow or wait or dry_run)
    service = connect()
    service.about()  # before anything is packed: is it there, and may we?
    spec |= _others(service, code_of, checkpoint, after)
    spec = {key: value for key, value in spec.items() if value is not None}
    if dry_run:
        data = service.submit(Submission(spec, None), dry_run=True)
        nothing = "nothing would change now: the job would wait"
        answer(data, as_json, lambda: changes_table(data, nothing, *terminal()))
        if not as_json:
            note("nothing has been submitted")
        return
    files = collect(code) if path is None and code_of is None else None
    if files is not None:
        check_command(command, files, directory or "", framework)
        if not as_json:
            tell(files)
    # Every pool has one device, so the usual minimum costs no request.
    hosts = service.hosts() if least > 1 else ()
    devices = sum(len(host.devices) for host in hosts if host.state == "up")
    if wanted is not None:
        _submit_array(service, spec, files, wanted, as_json)
        return
    job = _submitted(service, Submission(spec, files))
    if least > max(1, devices) and not as_json:
        has = f"the hosts that are up have {plural(devices, 'device')}"
        advice = f"edt set {job['id']} --min N" if devices else "see: edt hosts"
        note(f"it waits: --min {least}, and {has}; {advice}")
    if follow or wait:
        raise typer.Exit(_follow(service, job, as_json, shows_output=follow))
    if as_json:
        print_json(job)
        return
    print(job["id"])
    note(f"{job.get('state', 'queued')}; see: edt why {job['id']}, edt logs -f {job['id']}, edt top")


def _indices(array: str | None, is_of_one: bool) -> Indices | None:
    if array is not None and is_of_one:
        raise MistakenError("--array: --follow, --wait and --dry-run are about one job", "leave them out")
    return None if array is None else indices(array)


def _submit_array(service: Service, spec: Json, files: Code | None, wanted: Indices, as_json: bool) -> None:
    """Submit a job for each index; code is sent with the first, and copied from it for the others."""
    spec = {**spec, "array_id": secrets.token_hex(8)}
    if wanted.limit is not None:
        spec["array_limit"] = wanted.limit
    jobs: list[Json] = []
    for index in wanted.numbers:
        source = {"code_of": jobs[0]["id"]} if jobs and files is not None else {}
        body = Submission({**spec, "array_index": index, **source}, None if jobs else files)
        jobs.append(_submitted(service, body))
        if not as_json:
            print(jobs[-1]["id"], flush=True)
    if as_json:
        print_json({"jobs": jobs})


def _others(service: Service, code_of: str | None, checkpoint: str | None, after: str | None) -> Json:
    """What other jobs have to do with a new one: their ids for names and beginnings of ids."""
    awaited = [service.resolve(job.strip()) for job in after.split(",")] if after is not None else None
    return {"after": awaited, **(_source(service, code_of, checkpoint) if code_of is not None else {})}


def _source(service: Service, job: str, checkpoint: str | None) -> dict[str, str | None]:
    """The job whose code is to be copied and its checkpoint, by id and name."""
    job_id = service.resolve(job)
    if checkpoint == NEWEST:
        found = model.many(service.call("GET", "jobs", job_id, "checkpoints"), "checkpoints")
        if not found:
            raise MistakenError(f"--checkpoint {NEWEST}: {job_id} has no checkpoint", "leave it out")
        checkpoint = str(found[-1]["name"])
    return {"code_of": job_id, "checkpoint": checkpoint}


def collect(code: Path | None) -> Code:
    """The files of a folder, by default of the present one, unless that cannot be meant."""
    folder = Path.cwd() if code is None else code.absolute()
    if code is None and folder in (expanded("~"), Path("/")):
        advice = "change to the folder of your script, or name one with --code"
        raise MistakenError(f"{folder} is not a folder of code", advice)
    return packing.collect(folder)


def _check_script(code: Code, script: Path) -> None:
    """Raise `MistakenError` unless a script, a path inside the code, is sent with it."""
    found = os.path.relpath((code.folder / script).resolve(), code.folder.resolve())
    sent = [entry.path for entry in code.entries]
    is_there = (code.folder / script).exists()
    if script.is_absolute() or (is_there and found in (".", *sent)):
        return
    if is_there:
        raise MistakenError(
            f"{script} is in {code.folder}, but is not sent", packing.how_to_send(code, str(script))
        )
    beside = [path for path in sent if path.endswith(".py") and "/" not in path]
    hint = f"give one of {', '.join(beside[:5])}" if beside else "name the folder of the program with --code"
    raise MistakenError(f"{script} is not a file in {code.folder}", hint)


def check_command(command: Sequence[str], code: Code, directory: str, framework: str | None) -> None:
    """Raise `MistakenError` if it can be seen that a command cannot run in a folder of the code."""
    program = command[0] if "/" in command[0] else None
    for script in filter(None, (program, needed_script(command))):
        _check_script(code, Path(directory, script))
    if framework is None and (problem := script_problem(command, code.folder / directory, None)) is not None:
        raise MistakenError(problem.text, problem.advice)


def numbers(text: str | None) -> list[int] | None:
    """Numbers of workers from such as 1,2,4."""
    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdecimal() and int(part) > 0 for part in parts):
        raise MistakenError(f"--allowed {text}: expected numbers of workers such as 1,2,4")
    return sorted(set(map(int, parts)))


def environment(variables: Sequence[str], mine: Mapping[str, str]) -> dict[str, str] | None:
    """The job's variables, by name, those without a value from `mine`; None if there are none."""
    found: dict[str, str] = {}
    for text in variables:
        name, equals, value = text.partition("=")
        if not (name.isascii() and name.isidentifier()):
            expected = "expected NAME=VALUE, or the NAME of one of your variables"
            raise MistakenError(f"--env {name!r}: that is no name of a variable", expected)
        if not equals and name not in mine:
            raise MistakenError(f"--env {name}: there is no such variable here", f"give --env {name}=VALUE")
        found[name] = value if equals else mine[name]
    return found or None


def _submitted(service: Service, body: Submission, pause: Callable[[float], None] = time.sleep) -> Json:
    """Submit once, in as many attempts as it takes; the key lets the service know them for one."""
    key = secrets.token_hex(16)
    for seconds in PAUSES:
        try:
            return service.submit(body, key=key)
        except UnreachableError as error:
            note(f"edt: {error.text}; trying again")
            pause(seconds)
    return service.submit(body, key=key)


def _follow(service: Service, data: Json, as_json: bool, *, shows_output: bool) -> int:
    from edt_launch.cli.commands.logs import output, print_lines, say

    job_id = str(data["id"])
    note(f"{job_id}; Ctrl-C ends this view, not the job: edt stop {job_id}")
    lines = output(service, job_id, follow=True, told=say)
    if shows_output:
        print_lines(lines, as_json)
    else:
        deque(lines, maxlen=0)
    final = service.job(job_id)
    if as_json:
        print(json.dumps(final))
    job = model.job(final)
    note(conclusion(job))
    return ExitCode.SUCCESS if job.state == "succeeded" else job.exit_code or ExitCode.FAILED


def conclusion(job: ListedJob) -> str:
    """How a job ended, in a line, and what its launcher said if it failed."""
    lasted = job.ended - job.started if job.ended is not None and job.started is not None else None
    after = f" after {duration(lasted)}" if lasted is not None else ""
    resized = f", {plural(job.resizes, 'resize')}" if job.resizes is not None else ""
    text = f"{job.id} {job.state}{after}{resized}"
    return "\n".join([text, *map(visible, (job.failure or "").splitlines())])
