"""``edt results`` and ``edt checkpoints``: archives that the service sends, as files."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from edt_launch.cli import model
from edt_launch.cli.client.transport import Answer
from edt_launch.cli.errors import MistakenError
from edt_launch.cli.screen import Column, Columns, listing, moment, terminal
from edt_launch.cli.session import AsJson, JobName, answer, confirm, connect
from edt_launch.core.text.byte_sizes import byte_size
from edt_launch.core.text.terminal_text import visible

STANDARD_OUTPUT = "-"
MAX_NAMED = 10
"""Files that are named after they were fetched."""


def results(
    job: JobName,
    names: Annotated[
        list[str] | None,
        Argument(metavar="[FILE]...", help="Only these files and folders, as --list names them."),
    ] = None,
    output: Annotated[
        str | None,
        Option(
            "--output",
            "-o",
            help="Archive to write, - for standard output. Default: JOB-results.tar.gz or .zip.",
        ),
    ] = None,
    as_zip: Annotated[
        bool, Option("--zip", help="Write a zip instead of a tar.gz, without links and empty folders.")
    ] = False,
    only_list: Annotated[bool, Option("--list", help="Only list the files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fetch what a job has made as a tar.gz or zip; while it runs, what is there by now.

    That is what it has written to model/, its logs in log/ and, in work/, the files of its working directory
    that were not submitted or have changed.
    """
    service = connect()
    job_id = service.resolve(job)
    data = service.call("GET", "jobs", job_id, "files")
    found = model.many(data, "files")
    if only_list:
        answer(data, as_json, lambda: _files(found, bool(data["complete"])))
        return
    kind = "zip" if as_zip else "tar.gz"
    path = output or f"{job_id}-results.{kind}"
    save(service.archive(job_id, "results", name=names or None, format=kind), path)
    if path != STANDARD_OUTPUT:
        confirm({"job": job_id, "file": path}, as_json, _fetched(job_id, path, found, names or []))


def _fetched(job_id: str, path: str, found: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    made = [one for one in found if not str(one["name"]).startswith("log/")]
    if names:
        return f"{job_id}: {', '.join(map(visible, names))} {'is' if len(names) == 1 else 'are'} in {path}"
    if not made:
        return (
            f"{job_id}: its logs are in {path}; it has written nothing to model/, and no file to its working "
            "directory"
        )
    lines = [f"  {visible(one['name'])}  {byte_size(one['size'])}" for one in made[:MAX_NAMED]]
    if len(made) > MAX_NAMED:
        lines.append(f"  and {len(made) - MAX_NAMED} more: edt results {job_id} --list")
    return "\n".join([f"{job_id}: its results are in {path}, besides its logs", *lines])


def _files(found: Sequence[Mapping[str, Any]], is_complete: bool) -> list[str]:
    if not found:
        return ["no files"]
    now = time.time()
    columns: Columns[Mapping[str, Any]] = {
        Column("FILE"): lambda one: visible(one["name"]),
        Column("SIZE", right=True): lambda one: byte_size(one["size"]),
        Column("CHANGED"): lambda one: moment(one["time"], now),
    }
    lines = listing(columns, found, *terminal())
    return lines if is_complete else [*lines, f"and more: these are the first {len(found):,}"]


def checkpoints(
    job: JobName,
    output: Annotated[
        str | None, Option("--output", "-o", help="Fetch one into this file; - for standard output.")
    ] = None,
    name: Annotated[str | None, Option(help="Checkpoint to fetch. Default: the newest.")] = None,
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
        Column("SIZE", right=True): lambda one: byte_size(one.get("size") or 0),
        Column("MADE"): lambda one: moment(one.get("time"), now),
    }
    return listing(columns, listed, *terminal())


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
