"""Text for terminals: tables that fit, bars, times, colours where they are wanted; without slow imports."""

import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TextIO, TypeVar

STYLES = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "magenta": "35",
    "cyan": "36", "bright green": "92", "bright yellow": "93", "bright blue": "94", "bright magenta": "95",
    "bright cyan": "96",
}  # fmt: skip
STATE_STYLES = {
    "running": "green",
    "succeeded": "green",
    "failed": "red",
    "stopped": "dim",
    "queued": "yellow",
    "paused": "dim",
}
GAP = "  "
WIDEST = 9999
"""Columns of what is no terminal: nothing is cut there."""


def width() -> int:
    """Columns of the terminal, 40 at least; `WIDEST` where there is none, unless $COLUMNS says."""
    return max(shutil.get_terminal_size((WIDEST, 24)).columns, 40)


def has_colours(stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether escape codes are wanted in `stream`."""
    if environment.get("NO_COLOR") or environment.get("TERM") == "dumb":
        return False
    return bool(environment.get("FORCE_COLOR")) or stream.isatty()


def terminal() -> tuple[int, bool]:
    """The columns of standard output, and whether it takes colours."""
    return width(), has_colours(sys.stdout)


def columns(text: str) -> int:
    """How many columns a terminal gives to `text`."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 1 + (unicodedata.east_asian_width(character) in "WF")
        for character in text
    )


def cut(text: str, limit: int) -> str:
    """At most `limit` columns of `text`; what was cut is shown by an ellipsis."""
    if columns(text) <= limit:
        return text
    kept, used = [], 0
    for character in text:
        used += columns(character)
        if used > limit - 1:
            break
        kept.append(character)
    return "".join(kept) + "…"[: max(limit, 0)]


class Column(NamedTuple):
    """A column of a table: one without `least` is never cut, an `optional` one is left out if need be."""

    title: str
    right: bool = False
    least: int | None = None
    optional: bool = False


class Cell(NamedTuple):
    """A text and its style, a key of STYLES or empty."""

    text: str
    style: str = ""


def state_cell(state: str) -> Cell:
    """A state in its colour."""
    return Cell(state, STATE_STYLES.get(state, ""))


def table(
    heads: Sequence[Column], rows: Iterable[Sequence[Cell | str]], limit: int, colours: bool
) -> list[str]:
    """Lines of a table at most `limit` columns wide, if it may be cut so far; the last columns go first."""
    cells = [[Cell(one) if isinstance(one, str) else one for one in row] for row in rows]
    widths = [
        max([len(head.title), *(columns(row[i].text) for row in cells)]) for i, head in enumerate(heads)
    ]
    kept = _kept(heads, widths, limit)
    heads, widths = [heads[i] for i in kept], [widths[i] for i in kept]
    cells = [[row[i] for i in kept] for row in cells]
    excess = sum(widths) + len(GAP) * (len(heads) - 1) - limit
    for i in range(len(heads) - 1, -1, -1):
        least = heads[i].least
        if excess > 0 and least is not None and widths[i] > least:
            less = min(excess, widths[i] - least)
            widths[i] -= less
            excess -= less
    titles = [Cell(head.title, "bold") for head in heads]
    return [_line(heads, row, widths, colours) for row in [titles, *cells]]


T = TypeVar("T")
Columns = Mapping[Column, Callable[[T], Cell | str]]
"""Columns, and how each makes its cell of a thing."""


def listing(columns: Columns[T], things: Iterable[T], limit: int, colours: bool) -> list[str]:
    """A table of things, one a line."""
    rows = [[cell(thing) for cell in columns.values()] for thing in things]
    return table(list(columns), rows, limit, colours)


def _kept(heads: Sequence[Column], widths: Sequence[int], limit: int) -> list[int]:
    """Columns that there is room for if all are cut as far as they may be."""
    least = [
        wide if head.least is None else min(wide, head.least)
        for head, wide in zip(heads, widths, strict=True)
    ]
    kept = list(range(len(heads)))
    for i in reversed(range(len(heads))):
        if heads[i].optional and sum(least[k] + len(GAP) for k in kept) - len(GAP) > limit:
            kept.remove(i)
    return kept


def paint(text: str, style: str, colours: bool) -> str:
    """The text in a style, if colours are wanted."""
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if colours and style and text else text


def bar(part: float, length: int, full: str = "━", empty: str = "╌") -> str:
    """A bar of `length` columns; `part` from 0 to 1 of it is full."""
    filled = round(max(0.0, min(part, 1.0)) * length)
    return full * filled + empty * (length - filled)


def moment(at: float | None, now: float) -> str:
    """A unix time as local time with the name of its zone, and with the date unless it is near."""
    if at is None:
        return "-"
    date = "" if abs(now - at) < 43200 else "%Y-%m-%d "
    return time.strftime(f"{date}%H:%M:%S %Z", time.localtime(at))


def number(value: float | None) -> str:
    """A number in few characters; a dash for None."""
    return "-" if value is None else f"{value:.4g}"


def plural(count: int, noun: str) -> str:
    """Such as 1 worker, 2 workers."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def show(lines: Sequence[str]) -> None:
    """Print lines on standard output."""
    sys.stdout.write("".join(f"{line}\n" for line in lines))


def note(text: str) -> None:
    """Say something beside the result, on standard error."""
    print(text, file=sys.stderr, flush=True)


def _line(heads: Sequence[Column], row: Sequence[Cell], widths: Sequence[int], colours: bool) -> str:
    parts = []
    for head, cell, wide in zip(heads, row, widths, strict=True):
        text = cut(cell.text, wide)
        padding = " " * (wide - columns(text))
        painted = paint(text, cell.style, colours)
        parts.append(padding + painted if head.right else painted + padding)
    return GAP.join(parts).rstrip()
