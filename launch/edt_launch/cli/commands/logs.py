"""``edt logs``: a job's output as it comes, through resizes and restarts of the service.

After a broken connection the output is asked for again from its beginning, and as many lines of each rank as
have been seen are skipped: lines of one rank never change their order, those of different ranks may.
"""

import json
import re
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Literal

from typer import Option

from edt_launch.cli import model
from edt_launch.cli.client.service import Service
from edt_launch.cli.errors import MistakenError, UnreachableError
from edt_launch.cli.screen import has_colours, note, paint
from edt_launch.cli.session import AsJson, JobName, connect
from edt_launch.cli.times import moment
from edt_launch.core.text.terminal_text import visible, without_sequences

RETRY = 1.0  # seconds between two attempts to reach a service that went away
RANK = re.compile(r"\[([^\]]{1,40})\] ")
"""What is in front of a line when the lines of all ranks are shown."""
Level = Literal["warning", "error"]
"""The least level of lines that are looked for."""
COLOURS = ("cyan", "green", "yellow")  # of the ranks, in turn


def logs(
    job: JobName,
    follow: Annotated[bool, Option("--follow", "-f", help="Keep printing until the job ends.")] = False,
    rank: Annotated[int | None, Option(min=0, help="Only this worker's lines.")] = None,
    tail: Annotated[int | None, Option("--tail", "-n", min=0, help="Only the last N lines.")] = None,
    search: Annotated[
        str | None, Option("--search", "-s", help="Only lines with this text; case is ignored.")
    ] = None,
    level: Annotated[
        Level | None, Option(help="Only lines that look like errors, or like warnings and errors.")
    ] = None,
    since: Annotated[
        str | None, Option(help="Only lines printed since then: 10m ago, or a time such as 2026-03-01T12:30.")
    ] = None,
    until: Annotated[str | None, Option(help="Only lines printed before this time.")] = None,
    launcher: Annotated[bool, Option("--launcher", help="Only the output of edt-launch itself.")] = False,
    raw: Annotated[bool, Option("--raw", help="Keep terminal control sequences, such as colours.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print what a job's workers print, with the rank in front of each line.

    Following survives resizes, and a service that is started again. On a terminal, sequences that would steer
    it are left out. When lines were printed is known to ten seconds: those from shortly before and after are
    printed, too.
    """
    times = {"since": moment("--since", since, time.time()), "until": moment("--until", until, time.time())}
    service = connect()
    job_id = service.resolve(job)
    if search is None and level is None and since is None and until is None and not launcher:
        lines = output(service, job_id, rank=rank, follow=follow, tail=tail, told=say)
    elif search == "" or follow or tail is not None:
        raise MistakenError(
            "--search needs a text; neither it nor --level, --since, --until and --launcher go with --follow"
            " or --tail",
            f"for lines to come: edt logs -f {job_id} | grep TEXT",
        )
    else:
        wanted = {"text": search, "rank": rank, "level": level, "launcher": launcher or None, **times}
        lines = service.found_lines(job_id, **wanted)
    is_clean = not raw and sys.stdout.isatty()
    print_lines(map(cleaned, lines) if is_clean else lines, as_json, rank=rank, flush=follow)


def cleaned(line: str) -> str:
    """The line without what could steer a terminal."""
    return visible(without_sequences(line))


def say(text: str) -> None:
    """Say what happens to the connection."""
    note(f"edt: {text}")


def print_lines(lines: Iterable[str], as_json: bool, *, rank: int | None = None, flush: bool = True) -> None:
    """Print a job's output: with the ranks in colour, or as JSON objects; `rank` is the one asked for."""
    colours = has_colours(sys.stdout)
    for line in lines:
        print(_object(line, rank) if as_json else _painted(line, colours), flush=flush)


def _object(line: str, rank: int | None) -> str:
    label = RANK.match(line) if rank is None else None
    source = label[1] if label else None if rank is None else str(rank)
    return json.dumps({"rank": source, "text": line[label.end() :] if label else line})


def _painted(line: str, colours: bool) -> str:
    label = RANK.match(line) if colours else None
    if label is None:
        return line
    style = COLOURS[int(label[1]) % len(COLOURS)] if label[1].isdecimal() else "dim"
    return paint(line[: label.end() - 1], style, colours) + line[label.end() - 1 :]


def output(
    service: Service,
    job_id: str,
    *,
    rank: int | None = None,
    follow: bool = False,
    tail: int | None = None,
    told: Callable[[str], None] = lambda text: None,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[str]:
    """The lines of a job's workers, each with its rank in front unless one rank was asked for.

    Args:
        service, job_id: where the job is, and which one.
        rank: only this worker's lines.
        follow: go on until the job ends, also when the service is started again meanwhile.
        tail: only the last lines that there are now, so many, and what comes.
        told: is told about connections that are lost and found.
        pause: waits so many seconds.

    Raises:
        ClientError: the first connection fails, or any later one for another reason than an absent service.
    """
    if not follow:
        yield from service.logs(job_id, rank=rank, tail=tail).lines()
        return
    seen: Counter[str] = Counter()
    if tail is not None:
        yield from deque(_unseen(service.logs(job_id, rank=rank).lines(), seen), tail)
    answer = service.logs(job_id, rank=rank, follow=True)
    is_lost = False
    while True:
        try:
            if is_lost:
                answer = service.logs(job_id, rank=rank, follow=True)
                told("the service is back")
                is_lost = False
            yield from _unseen(answer.lines(), seen)
            if model.job(service.job(job_id)).has_ended:
                return
            raise UnreachableError("the service ended the connection")
        except UnreachableError as error:
            if not is_lost:
                told(f"{error.text}; waiting for it")
            is_lost = True
        pause(RETRY)


def _unseen(lines: Iterable[str], seen: Counter[str]) -> Iterator[str]:
    """The lines after those that were counted in `seen`; counts them, too."""
    skipped = seen.copy()
    for line in lines:
        label = RANK.match(line)
        source = label[1] if label else ""
        if skipped[source]:
            skipped[source] -= 1
        else:
            seen[source] += 1
            yield line
