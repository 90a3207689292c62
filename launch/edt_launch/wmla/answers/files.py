"""Which files of a job answer what WMLA's clients ask for."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

from edt_launch.wmla.answers.views import Execution
from edt_launch.wmla.frameworks import Framework
from edt_launch.wmla.identity import number_of
from edt_launch.wmla.running.layout import executor_id

STDOUT, STDERR, LAUNCHER = "stdout", "stderr", "launcherlog"


def training_log(execution: Execution) -> Sequence[Path]:
    """What `/log` consists of: of an elastic job what its logger wrote, alone; of others what they print.

    Clients take the former apart by commas: a line of anything else would break them.
    """
    if execution.job.framework is Framework.ELASTIC:
        return [folder / STDOUT for folder in execution.result.log_dirs(driver(execution))]
    return [main_output(execution, STDOUT)]


def main_output(execution: Execution, stream: str) -> Path:
    """What the process prints that stands for the job: the driver, or its first process."""
    job, result = execution.job, execution.result
    match job.framework:
        case None:
            return execution.files.launcher_log if stream == STDOUT else result.log / stream
        case Framework.ELASTIC:
            return result.printed(driver(execution), stream)
        case Framework.SINGLE | Framework.GANG:
            return executor_output(execution, 1, stream)


def executor_output(execution: Execution, number: int, stream: str) -> Path:
    """What an executor or worker prints, counted from 1."""
    if execution.job.framework is None:
        return execution.result.rank_log(str(number - 1) if stream == STDOUT else stream)
    return execution.result.printed(executor_id(_exec_id(execution), number), stream)


def executors(execution: Execution) -> list[str]:
    """The ids of the executors and workers that the job has had, in order."""
    if execution.job.framework is None:
        return [executor_id(execution.job.id, number + 1) for number in range(execution.job.size)]
    try:
        names = [path.name for path in execution.result.processes.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []
    numbered = sorted((number, name) for name in names if (number := number_of(name)) is not None)
    return [name for _, name in numbered]


def driver(execution: Execution) -> str:
    """The id of the driver: the one that was given to the job, or the one that it has given itself."""
    return execution.names.driver if execution.names.number else _own(execution, "driver")


def _exec_id(execution: Execution) -> str:
    return execution.names.id if execution.names.number else _own(execution, "exec_id")


def _own(execution: Execution, name: str) -> str:
    """One of the names that a job has written down."""
    try:
        found = str(json.loads(execution.result.identity.read_text())[name])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return execution.job.id
    return found if re.fullmatch(r"[\w@-][\w.@-]*", found) else execution.job.id
