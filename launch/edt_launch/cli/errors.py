"""What can go wrong between a user and the service, and the exit codes of `edt`.

::

    ClientError             anything that a command can explain; carries exit code and what to do next
    ├── MistakenError       an option, a file or the configuration is wrong
    ├── UnreachableError    nothing answers at the service's address
    ├── RefusedError        the service said no
    ├── NotAllowedError     the token is unknown, or its user may not do this
    ├── NoSuchJobError      there is no such job, or not for this user
    └── NonsenseError       the service answered what nobody understands
"""

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """The exit codes of `edt`'s commands."""

    SUCCESS = 0
    FAILED = 1
    """The service refused, or the job that was followed did not succeed."""
    USAGE = 2
    """An option, an argument or the configuration is wrong."""
    UNREACHABLE = 3
    """The service cannot be reached, or what answers there is none."""
    INTERNAL = 4
    """A mistake in EDT itself."""
    NOT_ALLOWED = 5
    """The token is unknown, or its user may not do this."""
    NO_SUCH_JOB = 6
    INTERRUPTED = 130
    """Ended by Ctrl-C."""


class ClientError(Exception):
    """The root of the client's exceptions: what is wrong, with value and limit, and what to do about it.

    `status` is the service's HTTP status, if it was the service that complained.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(self, text: str, next_step: str = "", status: int | None = None) -> None:
        super().__init__(f"{text}; {next_step}" if next_step else text)
        self.text, self.next_step, self.status = text, next_step, status


class MistakenError(ClientError):
    """An option, a file or the configuration is wrong."""

    exit_code = ExitCode.USAGE


class UnreachableError(ClientError):
    """Nothing answers at the service's address."""

    exit_code = ExitCode.UNREACHABLE


class RefusedError(ClientError):
    """The service said no."""

    exit_code = ExitCode.FAILED


class NotAllowedError(ClientError):
    """The token is unknown, or its user may not do this."""

    exit_code = ExitCode.NOT_ALLOWED


class NoSuchJobError(ClientError):
    """There is no such job, or not for this user."""

    exit_code = ExitCode.NO_SUCH_JOB


class NonsenseError(ClientError):
    """The service answered what nobody understands; versions may differ, or it is no service of EDT."""

    exit_code = ExitCode.UNREACHABLE
