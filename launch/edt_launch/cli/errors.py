"""What can go wrong between a user and the service, how a command ends then, and the exit codes of `edt`.

::

    ClientError             anything that a command can explain; carries exit code and what to do next
    ├── MistakenError       an option, a file or the configuration is wrong
    ├── UnreachableError    nothing answers at the service's address
    ├── RefusedError        the service said no
    ├── NotAllowedError     the token is unknown, or its user may not do this
    ├── NoSuchJobError      there is no such job, or not for this user
    └── NonsenseError       the service answered what nobody understands
"""

import errno
import json
import os
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar

import typer
from typer.exceptions import TyperException

from edt_launch.cli.screen import has_colours, paint, width
from edt_launch.core.system import current_directory
from edt_launch.core.text.masking import without_secrets


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


UNWRITABLE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EPIPE})


def report(error: TyperException, as_json: bool) -> int:
    """Say what is wrong with the words of the command line."""
    context = getattr(error, "ctx", None)
    text = error.format_message().strip()
    if context is not None and text.startswith(context.get_usage()):
        print(text)  # no arguments at all: the help is the message
        return ExitCode.USAGE
    text = text.rstrip(".").replace("Input should be", "expected")  # as pydantic says it
    command = context.command_path if context is not None else "edt"
    return _tell(MistakenError(text, f"see '{command} --help'"), as_json)


def ended_by(error: Exception, as_json: bool) -> int:
    """Say what went wrong; what we did not foresee is written to a file with all details."""
    if isinstance(error, ClientError):
        return _tell(error, as_json)
    if isinstance(error, typer.Abort):
        return ExitCode.INTERRUPTED
    if isinstance(error, OSError) and error.filename is None and error.errno in UNWRITABLE:
        return _unwritable(error)
    if isinstance(error, FileNotFoundError) and current_directory.is_deleted():
        return _tell(MistakenError(current_directory.DELETED, current_directory.ADVICE), as_json)
    import tempfile
    import traceback

    details = without_secrets("".join(traceback.format_exception(error)), os.environ)
    text = f"a mistake in edt: {without_secrets(f'{type(error).__name__}: {error}', os.environ)}"
    try:
        file = tempfile.NamedTemporaryFile("wb", prefix="edt-", suffix=".txt", delete=False)  # noqa: SIM115
        with file:
            file.write(details.encode(errors="replace"))
    except OSError:  # there is no folder for it, or no room
        print(details, file=sys.stderr)
        return _tell(ClientError(text, "please report it with what is above"), as_json)
    return _tell(ClientError(text, f"please report it with {file.name}"), as_json)


def check_arguments(words: Sequence[str]) -> None:
    """Raise `MistakenError` unless all arguments are text: they are sent as JSON and in addresses."""
    for number, word in enumerate(words, start=1):
        if not word.isascii() and word != word.encode(errors="replace").decode():
            raise MistakenError(f"argument {number} is no text in UTF-8", "give it as text")


def _tell(error: ClientError, as_json: bool) -> int:
    code = error.exit_code
    if as_json:
        data = {"detail": error.text, "next": error.next_step, "status": error.status, "exit_code": code}
        try:
            print(json.dumps({"error": data}), flush=True)
        except OSError as unwritable:
            return _unwritable(unwritable)
        return code
    lines = [part for line in f"edt: {error}".splitlines() for part in _wrapped(line)]
    head = lines[0].replace("edt:", paint("edt:", "red", has_colours(sys.stderr)), 1)
    print("\n".join([head, *lines[1:]]), file=sys.stderr)
    return code


def _unwritable(error: OSError) -> int:
    """Standard output takes no more: say so where somebody may read it, unless the reader has enough."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - else what waits to be written fails at exit again
    if error.errno == errno.EPIPE:
        return ExitCode.FAILED
    return _tell(RefusedError(f"standard output cannot be written: {error.strerror}"), as_json=False)


def _wrapped(line: str) -> list[str]:
    """The line in pieces that fit; what is in quotation marks may be a command to copy, and stays whole."""
    import re
    import textwrap

    kept = re.sub(r"'[^']{1,60}'", lambda quoted: quoted[0].replace(" ", "\0"), line)
    parts = textwrap.wrap(
        kept, width(), subsequent_indent="     ", break_long_words=False, break_on_hyphens=False
    )
    return [part.replace("\0", " ") for part in parts] or [line]
