"""What can go wrong in the launcher, and how it ends.

::

    EdtLaunchError              anything the launcher can explain; carries its exit code
    ├── UsageError              an option, a path or a host given on the command line is wrong
    │   ├── SourceError         a source of hosts cannot say which there are
    │   │   ├── HostsError      a list of hosts makes no sense
    │   │   └── DiscoveryError  a host-discovery script has not worked
    │   └── TraceError          a workload trace makes no sense
    ├── AllocationError         an allocation file makes no sense
    ├── StartError              the job could not start
    │   └── StartTimeoutError   the slots it needs did not come in time
    ├── ResourceError           the machine lacks disk space, memory or the like
    └── RunError                a run of the script that `edt verify` compares did not work out
"""

import errno
from enum import IntEnum
from pathlib import Path
from typing import ClassVar

MAX_SHOWN_CHARACTERS = 80
"""Characters of an offending text that a message repeats."""


HOST_LOST = 255
"""Exit code of agents and workers whose host cannot be reached any more: ssh's own."""


class ExitCode(IntEnum):
    """The exit codes of `edt-launch`."""

    SUCCESS = 0
    """The training function has returned, or a program without one has ended well."""
    JOB_FAILED = 1
    """The job started and failed; the first failure is the last thing shown."""
    USAGE = 2
    """An option or the script's path is wrong."""
    NOT_STARTED = 3
    """Too few slots within `--start-timeout`, or an agent could not start."""
    INTERNAL = 4
    """A mistake in edt-launch itself."""
    LEFT = 5
    """All workers have left because of SIGUSR1: started again in the same folder, the job goes on."""
    OUT_OF_RESOURCES = 6
    """The machine lacks disk space, memory or the like: started again later, the job goes on."""
    HUNG_UP = 129
    """Ended by SIGHUP: its terminal went away."""
    INTERRUPTED = 130
    """Ended by Ctrl-C (SIGINT)."""
    TERMINATED = 143
    """Ended by SIGTERM."""


_OUT_OF = "EAGAIN", "EMFILE", "ENFILE", "ENOMEM", "EDQUOT", "EIO", "ENOSPC", "ESTALE"
PASSING = frozenset(getattr(errno, name) for name in _OUT_OF)
"""What the machine runs out of, and has again later."""


def is_passing(error: BaseException) -> bool:
    """Whether it is the machine's trouble, and no job's."""
    return isinstance(error, OSError) and error.errno in PASSING


class EdtLaunchError(Exception):
    """The root of the launcher's exceptions."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL


class UsageError(EdtLaunchError):
    """Something given on the command line is wrong."""

    exit_code = ExitCode.USAGE


class SourceError(UsageError):
    """A source of hosts cannot say which hosts and devices there are."""


class HostsError(SourceError):
    """A list of hosts or slots makes no sense; `where` is an option, a variable, or file and line."""

    def __init__(self, where: str, value: str, expected: str) -> None:
        super().__init__(f"{where}: {_shorten(value)!r}: expected {expected}")
        self.where, self.value, self.expected = where, value, expected


class DiscoveryError(SourceError):
    """A host-discovery script has failed, or has printed what makes no sense."""

    def __init__(self, path: Path, value: str, expected: str) -> None:
        said = f" printed {_shorten(value)!r}" if value else ""
        super().__init__(f"the host-discovery script {path}{said}: expected {expected}")


class TraceError(UsageError):
    """A workload trace, or a table that belongs to it, makes no sense.

    Args:
        path: the file.
        line: number of the line, from 1; None when the file as a whole is wrong.
        value: the offending part of it.
        expected: what it should be.
    """

    def __init__(self, path: Path, line: int | None, value: str, expected: str) -> None:
        where = str(path) if line is None else f"{path}, line {line}"
        super().__init__(f"{where}: {_shorten(value)!r}: expected {expected}")
        self.path, self.line, self.value, self.expected = path, line, value, expected


class AllocationError(EdtLaunchError):
    """The text of an allocation file makes no sense; the arguments are as for `TraceError`."""

    exit_code = ExitCode.USAGE

    def __init__(self, line: int | None, value: str, expected: str) -> None:
        where = "allocation" if line is None else f"allocation, line {line}"
        super().__init__(f"{where}: {_shorten(value)!r}: expected {expected}")
        self.line, self.value, self.expected = line, value, expected


class StartError(EdtLaunchError):
    """The job could not start."""

    exit_code = ExitCode.NOT_STARTED


class ResourceError(EdtLaunchError):
    """The machine lacks what the launcher needs: see `is_passing`."""

    exit_code = ExitCode.OUT_OF_RESOURCES


class StartTimeoutError(StartError):
    """The slots that the job needs did not come in time.

    `reason` is why the last allocation was not accepted, if there was one; `timeout` is in seconds.
    """

    def __init__(self, slots: int, min_np: int, timeout: float, reason: str = "") -> None:
        free = f": {reason}. Mend the allocation" if reason else ": free some hosts"
        super().__init__(
            f"{slots} of at least {min_np} slots after {timeout:g} s{free}, lower --min-np, or wait longer "
            "with --start-timeout"
        )


class RunError(EdtLaunchError):
    """A run of a script that is compared with others failed, hung, or recorded nothing."""

    exit_code = ExitCode.NOT_STARTED


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_SHOWN_CHARACTERS else text[:MAX_SHOWN_CHARACTERS] + "..."
