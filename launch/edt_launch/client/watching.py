"""Showing something again and again until Ctrl-C, also while the service is away."""

import json
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TextIO

from edt_launch.client.errors import UnreachableError
from edt_launch.client.screen import cut, width

INTERVAL = 1.0
"""Seconds between two looks."""

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def watch_lines(
    look: Callable[[], Sequence[str]],
    stream: TextIO | None = None,
    pause: Callable[[float], None] = time.sleep,
    until: Callable[[], bool] = lambda: False,
) -> bool:
    """Show lines, in place where `stream` is a terminal, until Ctrl-C or `until`; the last ones remain.

    Returns:
        Whether `until` said so.
    """
    stream = stream or sys.stdout
    lines: Sequence[str] = look()  # what is wrong from the beginning is an error
    in_place = stream.isatty()
    trouble = ""
    try:
        stream.write(_ENTER if in_place else "")
        while True:
            _draw(lines, trouble, stream, in_place)
            if until():
                return True
            pause(INTERVAL)
            try:
                lines, trouble = look(), ""
            except UnreachableError as error:
                trouble = f"trying again: {error.text}"
    except KeyboardInterrupt:
        return False
    finally:
        if in_place:
            stream.write(_LEAVE + "".join(f"{line}\n" for line in lines))
            stream.flush()


def watch_values(
    look: Callable[[], Any],
    name: str,
    stream: TextIO | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Print a JSON object on a line of its own whenever it is another one, until Ctrl-C."""
    value, shown = look(), None
    try:
        while True:
            if value != shown:
                print(json.dumps({name: value}), file=stream, flush=True)
                shown = value
            pause(INTERVAL)
            try:
                value = look()
            except UnreachableError:
                continue  # it is still what it was, as far as we know
    except KeyboardInterrupt:
        pass


def _draw(lines: Sequence[str], trouble: str, stream: TextIO, in_place: bool) -> None:
    every = [*lines, cut(trouble, width())] if trouble else list(lines)
    if not in_place:
        stream.write("".join(f"{line}\n" for line in every) + "\n")
    else:
        rows = shutil.get_terminal_size((80, 24)).lines - 1
        if len(every) > rows:
            every = [*every[: rows - 1], f"… and {len(every) - rows + 1} more"]
        stream.write("\x1b[H" + "".join(f"{line}\x1b[K\n" for line in every) + "\x1b[J")
    stream.flush()
