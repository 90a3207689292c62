"""Why a worker has ended, by its last words: the exception, and the line of the script."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

_BEGIN = "Traceback (most recent call last):"
_FRAME = re.compile(r'\s*File "(?P<path>.+)", line (?P<line>\d+)')
_EXCEPTION = re.compile(r"[\w.]+(?:Error|Exception|Interrupt|Exit|Warning|Iteration|Fault|Timeout)\b.*")

_OURS = re.compile(r"edt_hvd(?:\.\w+)*\.\w+Error: ")
"""The name of an error of edt_hvd, whose message says what to do."""

MAX_CAUSE_CHARACTERS = 2000
"""Characters of an exception that are shown."""


@dataclass(frozen=True)
class Cause:
    """An exception; as text such as ``ValueError: bad (train.py, line 12)``, of edt_hvd without its name.

    Attributes:
        line: the first one of what was printed of it, behind its traceback.
        origin: the file and the line; empty where there is no traceback.
    """

    line: str
    origin: str = ""

    def __str__(self) -> str:
        said = _OURS.sub("", self.line, count=1) if _OURS.match(self.line) else self.line
        shown = said if len(said) <= MAX_CAUSE_CHARACTERS else f"{said[:MAX_CAUSE_CHARACTERS]}..."
        return f"{shown} ({self.origin})" if self.origin else shown


def cause_of(lines: Sequence[str]) -> Cause | None:
    """The last exception that was printed.

    The exception follows the indented lines of its traceback; where the beginning of that is not among the
    lines, it is known by its name. The line is the last one in the traceback that is not a library's.

    Args:
        lines: what a worker has printed last, oldest first.

    Returns:
        None if no exception was printed.
    """
    begins = [number for number, line in enumerate(lines) if line == _BEGIN]
    begin = begins[-1] + 1 if begins else 0
    ends = [
        number
        for number, line in enumerate(lines[begin:], begin)
        if (_EXCEPTION.fullmatch(line) if not begins else line[:1].strip())
    ]
    if not ends:
        return None
    end = ends[0] if begins else ends[-1]
    found = [_FRAME.match(line) for line in lines[begin:end]]
    frames = [(frame["path"], frame["line"]) for frame in found if frame is not None]
    own = [frame for frame in frames if not _is_library(frame[0])] or frames
    return Cause(lines[end], f"{os.path.basename(own[-1][0])}, line {own[-1][1]}" if own else "")


def _is_library(path: str) -> bool:
    return path.startswith("<") or "site-packages" in path or "/lib/python" in path or "/edt_hvd/" in path
