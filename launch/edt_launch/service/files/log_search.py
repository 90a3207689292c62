"""Finding a text in a log, part by part: each search reads so much of it at most, and says where to go on."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from edt_launch.core.files.growing_file import BLOCK_BYTES, REACH
from edt_launch.core.files.lines import MAX_LINE_BYTES, LineSplitter
from edt_launch.core.files.plain_files import open_file
from edt_launch.service.files import rank_lines

MAX_MATCHES = 1000
"""Lines that one search finds."""


_ERROR = rb"ERROR|CRITICAL|FATAL|Traceback \(most recent|\w*(?:Error|Exception):"

_BEGIN = rb"(?:\b|\x1b\[[0-9;]*m)"  # a colour ends in a letter

LEVELS = {
    "": re.compile(b""),
    "error": re.compile(rb"%b(?:%b)" % (_BEGIN, _ERROR)),
    "warning": re.compile(rb"%b(?:%b|WARN(?:ING)?\b|\w*Warning:)" % (_BEGIN, _ERROR)),
}
"""Names of levels, and what lines of at least that level have: programs print them in their own ways."""


@dataclass(frozen=True)
class Hit:
    """A line with the text; `offset` is where it begins."""

    offset: int
    line: bytes


def search(
    path: Path,
    text: str,
    after: int = 0,
    most: int = MAX_MATCHES,
    reach: int = REACH,
    level: str = "",
    until: int | None = None,
    rank: int | None = None,
    only_launcher: bool = False,
) -> tuple[list[Hit], int | None]:
    """The next lines that have a text, in whatever case, and where to go on; None at the end of the file.

    Args:
        path: the log; lines of more than 64 KiB are passed over.
        text: what is searched for.
        after: where to begin; within a line, at the next one.
        most: lines that are found.
        reach: bytes that are read.
        level: of `LEVELS`, the least that lines have; empty for any.
        until: lines that begin there or later are not looked at; None for the end of the file.
        rank: only its lines, which are given without their `[rank]`; None for all.
        only_launcher: whether to pass over the lines of all workers.

    Raises:
        FileNotFoundError, NoFileError: it is not there, or no file.
    """
    selected = rank_lines.selected(rank, only_launcher=only_launcher)
    pattern = re.compile(re.escape(text.encode(errors="surrogateescape")), re.IGNORECASE)
    found: list[Hit] = []
    with open_file(path, buffering=0) as file:
        start = max(0, after - 1)
        last = os.fstat(file.fileno()).st_size if until is None else until
        end = min(last, after + reach)
        file.seek(start)
        lines = LineSplitter(start, is_within=after > 0)
        at = start
        # A line that is not whole by then is read on, unless it is too long.
        while (at < end or (lines.offset <= after and lines.pending <= MAX_LINE_BYTES)) and (
            block := file.read(BLOCK_BYTES)
        ):
            at += len(block)
            for line in lines.feed(block):
                offset = lines.offset - len(line) - 1
                if until is not None and offset >= until:
                    return found, None
                shown = selected(line)
                if shown is not None and pattern.search(shown) and LEVELS[level].search(shown):
                    found.append(Hit(offset, shown))
                if len(found) == most:
                    return found, lines.offset
        is_over = at >= os.fstat(file.fileno()).st_size or (until is not None and lines.offset >= until)
    return found, None if is_over else lines.offset if lines.offset > after else at


def lines_at(path: Path, offset: int, before: int, after: int) -> tuple[int, list[bytes]]:
    """The whole lines around a place of a log, so many bytes before it and after it; where the first begins.

    Raises:
        FileNotFoundError, NoFileError: it is not there, or no file.
    """
    start = max(0, offset - before - 1)
    with open_file(path) as file:
        file.seek(start)
        content = file.read(offset - start + after)
        content += file.readline(MAX_LINE_BYTES)
    if offset > before:  # the byte before tells whether a line begins here
        _, _, rest = content.partition(b"\n")
        start, content = start + len(content) - len(rest), rest
    return start, content.removesuffix(b"\n").split(b"\n") if content else []
