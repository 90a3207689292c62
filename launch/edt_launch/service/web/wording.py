"""Times, numbers and lines of logs, as pages show them."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from edt_launch.core.text.durations import duration
from edt_launch.core.text.terminal_text import without_sequences

NONE = "-"
"""Stands for what is not known, or not for whoever looks."""

EVERYBODY = "everybody"
"""What the root of the owners' tree is called."""

DIGITS = 4
"""Significant digits of a number with a fraction."""

_FRACTION = re.compile(r"[+-]?[0-9]*\.[0-9]+([eE][+-]?[0-9]+)?")

HUES = 8
"""Hues of jobs in pictures; two jobs of the same letter have different ones, until 104 jobs later."""


def moment(time: float) -> str:
    """A time in full."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(time: float) -> str:
    """A time for programs."""
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")


def utc(time: float | None) -> str:
    """A time as forms have it; empty for none."""
    return "" if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def relative(time: float, now: float) -> str:
    """A time as seen from now: ``5m ago``, ``in 2h``."""
    if abs(time - now) < 1:
        return "now"
    return f"{duration(now - time)} ago" if time < now else f"in {duration(time - now)}"


def size(now: int, target: int) -> str:
    """Workers that a job has, and is going to have: ``2→4``."""
    return str(now) if now == target else f"{now}→{target}"


def bounds(least: int, most: int, allowed: Sequence[int] | None) -> str:
    """Workers that a job may have: ``1-4``, or the only numbers that it can run with."""
    if allowed is not None:
        return ", ".join(map(str, allowed))
    return str(least) if least == most else f"{least}-{most}"


def letter(number: int) -> str:
    """The letter of the job of a number, which counts submissions."""
    return chr(ord("A") + (number - 1) % 26)


def hue(number: int) -> int:
    """The hue of the job of a number, one of `HUES`."""
    return number % HUES


def number(value: float | None, digits: int) -> str:
    """A number with so many digits after the point at most; ``-`` if there is none."""
    return NONE if value is None else f"{round(value, digits):g}"


def percent(part: float, whole: float) -> float:
    """A part of a whole for a bar, at most 100; 0 of nothing."""
    return round(100 * min(1.0, part / whole), 1) if whole else 0.0


def precise(value: float | None) -> str:
    """A number with four significant digits; ``-`` if there is none."""
    return NONE if value is None else f"{value:.{DIGITS}g}"


def short(text: str) -> str:
    """A parameter: a number with a fraction as `precise` has it, any other text as it is."""
    digits = re.sub(r"[eE].*|\.", "", text).lstrip("+-0")
    return precise(float(text)) if _FRACTION.fullmatch(text) and len(digits) > DIGITS else text


def progress(step: int | None, total: int | None) -> str:
    """How far a job is."""
    if step is None:
        return NONE
    return f"{100 * step // total}%" if total else f"step {step}"


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def plain(line: bytes) -> str:
    """A line of a log without what steers a terminal; what was written over it last, if anything was."""
    return printable(line.decode(errors="replace")).rstrip("\r").rpartition("\r")[2]


def printable(text: str) -> str:
    """Text without what steers a terminal, but for carriage returns."""
    return _CONTROL.sub("", without_sequences(text))
