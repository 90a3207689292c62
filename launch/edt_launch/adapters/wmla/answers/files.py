"""Which files of a job answer what WMLA's clients ask for."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from edt_launch.adapters.wmla.answers.views import Execution
from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.identity import number_of
from edt_launch.adapters.wmla.running.layout import executor_id
from edt_launch.core.files import plain_files
from edt_launch.core.files.growing_file import recent_lines
from edt_launch.core.files.walking import names
from edt_launch.core.history.event_codec import read_line
from edt_launch.core.history.events import Launched, Released, Started
from edt_launch.core.history.job_history import JobHistory

COMING_AND_GOING = tuple(f'{{"event": "{cls.kind}"'.encode() for cls in (Launched, Started, Released))
"""How lines begin that tell of it: most of a long file are others, which need not be understood."""

STDOUT, STDERR, LAUNCHER = "stdout", "stderr", "launcherlog"


def training_log(execution: Execution) -> Sequence[Path]:
    """What `/log` consists of: of an elastic job what its logger wrote, alone; of others what they print.

    Clients take the former apart by commas: a line of anything else would break them.
    """
    if execution.job.framework == Framework.ELASTIC:
        return [folder / STDOUT for folder in execution.result.log_dirs(driver(execution))]
    return [main_output(execution, STDOUT)]


def main_output(execution: Execution, stream: str) -> Path:
    """What the process prints that stands for the job: the driver, or its first process."""
    job, result = execution.job, execution.result
    match Framework.of(job.framework):
        case None:
            return execution.files.launcher_log if stream == STDOUT else result.log / stream
        case Framework.ELASTIC:
            return result.printed(driver(execution), stream)
        case Framework.SINGLE | Framework.GANG:
            return executor_output(execution, 1, stream)


def executor_output(execution: Execution, number: int, stream: str) -> Path:
    """What an executor or worker prints, counted from 1; of a plain job, see `rank_in_log`."""
    if Framework.of(execution.job.framework) is None:
        return main_output(execution, stream)
    exec_id = execution.names.id if execution.names.number else _own(execution, "exec_id")
    return execution.result.printed(executor_id(exec_id, number), stream)


def rank_in_log(execution: Execution, number: int) -> int | None:
    """The rank whose lines in `executor_output` are those of an executor; None if all are."""
    return number - 1 if Framework.of(execution.job.framework) is None else None


def executors(execution: Execution) -> list[str]:
    """The ids of the executors and workers that the job has had, in order."""
    if Framework.of(execution.job.framework) is None:
        return [executor_id(execution.job.id, number + 1) for number in range(execution.job.size)]
    numbered = ((number_of(name), name) for name in names(execution.result.processes))
    return [name for _, name in sorted((number, name) for number, name in numbered if number is not None)]


def released(execution: Execution) -> frozenset[int]:
    """Which of a job's executors are gone while it goes on, counted from 1."""
    history = JobHistory()
    with suppress(OSError):  # it is not there yet, or the job has spoilt it
        lines = (line for line in recent_lines(execution.result.events) if line.startswith(COMING_AND_GOING))
        for event in filter(None, map(read_line, lines)):
            history.observe(event)
    return frozenset(worker + 1 for worker in history.gone)


def driver(execution: Execution) -> str:
    """The id of the driver: the one that was given to the job, or the one that it has given itself."""
    return execution.names.driver if execution.names.number else _own(execution, "driver")


def _own(execution: Execution, name: str) -> str:
    """One of the names that a job has written down."""
    try:
        own = str(json.loads(plain_files.read(execution.result.identity))[name])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return execution.job.id
    return own if re.fullmatch(r"[\w@-][\w.@-]*", own) else execution.job.id
