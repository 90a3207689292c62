"""Showing something again and again until q or Ctrl-C, also while the service is away."""

import json
import os
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from edt_launch.cli.errors import UnreachableError
from edt_launch.cli.screen import cut, width
from edt_launch.cli.signals import as_exits

INTERVAL = 1.0  # seconds between two looks

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


def watch_lines(
    look: Callable[[], Sequence[str]],
    stream: TextIO | None = None,
    pause: Callable[[float], None] | None = None,
    until: Callable[[], bool] = lambda: False,
) -> bool:
    """Show lines, in place where `stream` is a terminal, until q, Ctrl-C or `until`; the last ones remain.

    Returns whether `until` said so.
    """
    stream = stream or sys.stdout
    lines: Sequence[str] = look()  # what is wrong from the beginning is an error
    in_place = stream.isatty()
    trouble = ""
    try:
        with as_exits(), _keys() as ended_by_key:
            stream.write(_ENTER if in_place else "")
            while True:
                _draw(lines, trouble, stream, in_place)
                if until():
                    return True
                (pause or ended_by_key)(INTERVAL)
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
    with suppress(KeyboardInterrupt):
        while True:
            if value != shown:
                print(json.dumps({name: value}), file=stream, flush=True)
                shown = value
            pause(INTERVAL)
            with suppress(UnreachableError):  # it is still what it was, as far as we know
                value = look()


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


@contextmanager
def _keys() -> Iterator[Callable[[float], None]]:
    """A pause that q ends as Ctrl-C does, where the keyboard is ours."""
    if not sys.stdin.isatty():
        yield time.sleep
        return
    keyboard = sys.stdin.fileno()

    def pause(seconds: float) -> None:
        if not select.select([keyboard], [], [], seconds)[0]:
            return
        key = os.read(keyboard, 1)
        if key in (b"q", b"Q"):
            raise KeyboardInterrupt
        time.sleep(seconds if not key else 0.0)  # without a key, the terminal has gone away

    before = termios.tcgetattr(keyboard)
    tty.setcbreak(keyboard)
    try:
        yield pause
    finally:
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
