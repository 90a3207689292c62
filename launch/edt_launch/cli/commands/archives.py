"""``edt results`` and ``edt checkpoints``: archives that the service sends, as files."""

import os
import stat
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TextIO

from typer import Option

from edt_launch.cli import model
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import Column, Columns, listing, moment, size, terminal, visible
from edt_launch.cli.session import AsJson, JobName, answer, confirm, connect
from edt_launch.cli.transport import Answer

STANDARD_OUTPUT = "-"


def results(
    job: JobName,
    output: Annotated[
        str | None,
        Option(
            "--output",
            "-o",
            help="The file, else the one that standard output leads to, else JOB-results.tar.gz; "
            "- for standard output.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch what a job has made, and its logs, as a tar.gz; while it runs, what is there by now."""
    service = connect()
    job_id = service.resolve(job)
    into_file = STANDARD_OUTPUT if is_file(sys.stdout) and not as_json else f"{job_id}-results.tar.gz"
    path = output or into_file
    save(service.archive(job_id, "results"), path)
    if path != STANDARD_OUTPUT:
        confirm({"job": job_id, "file": path}, as_json, f"{job_id}: its results are in {path}")


def checkpoints(
    job: JobName,
    output: Annotated[
        str | None, Option("--output", "-o", help="Fetch one into this file; - for standard output.")
    ] = None,
    name: Annotated[str | None, Option(help="Which one to fetch, else the newest.")] = None,
    as_json: AsJson = False,
) -> None:
    """List a job's checkpoints; with --output, fetch one as a tar.gz."""
    service = connect()
    job_id = service.resolve(job)
    data = service.call("GET", "jobs", job_id, "checkpoints")
    listed = model.many(data, "checkpoints")
    if output is None:
        if name is not None:
            raise MistakenError(f"--name {name}: into which file?", "give --output, too")
        answer(data, as_json, lambda: _lines(listed))
        return
    if not listed:
        raise MistakenError(f"{job_id} has no checkpoint")
    chosen = name or str(listed[-1].get("name"))
    save(service.archive(job_id, "checkpoints", chosen), output)
    if output != STANDARD_OUTPUT:
        done = {"job": job_id, "checkpoint": chosen, "file": output}
        confirm(done, as_json, f"{job_id}: {chosen} is in {output}")


def _lines(listed: Sequence[Mapping[str, Any]]) -> list[str]:
    if not listed:
        return ["no checkpoints"]
    now = time.time()
    columns: Columns[Mapping[str, Any]] = {
        Column("NAME"): lambda one: visible(one.get("name")),
        Column("STEP", right=True): lambda one: str(one.get("step")),
        Column("SIZE", right=True): lambda one: size(one.get("size") or 0),
        Column("MADE"): lambda one: moment(one.get("time"), now),
    }
    return listing(columns, listed, *terminal())


def is_file(stream: TextIO) -> bool:
    """Whether a stream leads to a file, as `> F` has it."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or not one of the system's
        return False


def save(archive: Answer, output: str) -> None:
    """Write an archive to a file, which is there when all of it has come, or to standard output for `-`.

    Raises:
        MistakenError: the file cannot be written.
        UnreachableError: the connection breaks on the way.
    """
    if output == STANDARD_OUTPUT:
        sys.stdout.buffer.writelines(archive.blocks())
        return
    path = Path(output)
    is_special = path.exists() and not path.is_file()  # a device or a pipe, that nothing must replace
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with (path if is_special else beside).open("wb") as file:
            file.writelines(archive.blocks())
        if not is_special:
            beside.replace(path)
    except OSError as error:
        raise MistakenError(f"{path}: {error.strerror}", "name another file with --output") from None
    finally:
        beside.unlink(missing_ok=True)
