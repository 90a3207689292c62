"""How a command of `edt` ends when it could not do what it was asked for: one message, one exit code."""

import json
import os
import sys

import typer
from typer.exceptions import TyperException

from edt_launch.client.errors import ClientError, ExitCode, error_data
from edt_launch.client.screen import has_colours, paint, width


def report(error: TyperException, as_json: bool) -> int:
    """Say what is wrong with the words of the command line."""
    context = getattr(error, "ctx", None)
    text = error.format_message().strip()
    if context is not None and text.startswith(context.get_usage()):  # no arguments at all: the help is the message
        print(text)
        return ExitCode.USAGE
    text = text.rstrip(".")
    command = context.command_path if context is not None else "edt"
    return _tell(text, f"see '{command} --help'", ExitCode.USAGE, as_json, None)


def ended_by(error: Exception, as_json: bool) -> int:
    """Say what went wrong; what we did not foresee is written to a file with all details."""
    if isinstance(error, ClientError):
        return _tell(error.text, error.next_step, error.exit_code, as_json, error.status)
    if isinstance(error, typer.Abort):
        return ExitCode.INTERRUPTED
    if isinstance(error, BrokenPipeError):
        # Whoever read has enough; what is still buffered must not fail at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.SUCCESS
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="edt-", suffix=".txt", delete=False) as file:
        traceback.print_exception(error, file=file)
    return _tell(
        f"a mistake in edt: {type(error).__name__}: {error}",
        f"please report it with {file.name}",
        ExitCode.INTERNAL,
        as_json,
        None,
    )


def _tell(text: str, next_step: str, code: ExitCode, as_json: bool, status: int | None) -> int:
    if as_json:
        print(json.dumps(error_data(text, code, next_step, status)))
        return code
    import textwrap

    colours = has_colours(sys.stderr)
    message = f"edt: {text}" + (f"; {next_step}" if next_step else "")
    first, *others = textwrap.wrap(
        message, width(), subsequent_indent="     ", break_long_words=False, break_on_hyphens=False
    ) or [message]
    print("\n".join([first.replace("edt:", paint("edt:", "red", colours), 1), *others]), file=sys.stderr)
    return code
