"""Which process a job's launcher is, and the lock that it holds.

Whoever starts a launcher holds a lock on a file of the job, and hands it on to the launcher. The kernel gives
it up with the launcher's end, however that comes. So the lock is taken as long as a launcher lives; a second
one cannot be started, and nobody has to remember which is which. A process of the job may take the lock, too:
then the launcher lives if the process that it has written down does.
"""

import contextlib
import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import psutil

from edt_launch.agent.system import processes
from edt_launch.core.files import plain_files
from edt_launch.core.files.plain_files import NoFileError, open_file
from edt_launch.service.app.home import JobDir

IDENTITY = 4096
"""Bytes that say who a launcher is; they are read at every look."""


def read_identity(path: Path) -> tuple[int, float] | None:
    """The process and start time that a launcher has written down; None if it has not."""
    try:
        launcher = json.loads(plain_files.read(path, IDENTITY))
        return int(launcher["pid"]), float(launcher["started"])
    except (FileNotFoundError, NoFileError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def process_of(paths: JobDir) -> psutil.Process | None:
    """The launcher that has written down who it is, if it is alive."""
    written = read_identity(paths.launcher)
    if written is None:
        return None
    pid, started = written
    try:
        found = psutil.Process(pid)
        is_it = processes.started(pid) == started  # others may get its number
    except (psutil.Error, ValueError):  # there is none, or never can be
        return None
    return found if is_it and processes.is_alive(found) else None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[IO[bytes] | None]:
    """The lock, open; None if somebody has it. A child that has inherited it keeps it."""
    with open_file(path, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield file


def is_lock_free(paths: JobDir) -> bool:
    """Whether nobody has the lock of a job."""
    try:
        with open_file(paths.launcher_lock) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return True
    except NoFileError:  # the job's own doing; then what its launcher has written down counts
        return process_of(paths) is None
    except BlockingIOError:
        return False
    return True
