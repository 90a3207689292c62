"""The lines of one rank in the log of a job, in which each line of a worker begins with its rank."""

import re
from collections import deque
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from edt_launch.core.files.growing_file import REACH
from edt_launch.service.files import tailing
from edt_launch.service.files.tailing import IsOver

LONGEST = 2**20
"""Bytes of a line; longer ones are passed over."""

_OF_ANY = re.compile(rb"\[\d+\]")
"""What the lines of workers begin with."""


def of(rank: int) -> re.Pattern[bytes]:
    """What the lines of a rank begin with: `[3] `, or what Horovod's own launcher prints there."""
    return re.compile(rb"\[%d\](?: |<std(?:out|err)>:)" % rank)


def selected(rank: int | None = None, *, only_launcher: bool = False) -> Callable[[bytes], bytes | None]:
    """The text of a line if it is a rank's, or the launcher's; None if not. Without either, each line."""
    if rank is not None:
        begin = of(rank)
        return lambda line: line[match.end() :] if (match := begin.match(line)) else None
    return lambda line: None if only_launcher and _OF_ANY.match(line) else line


async def read(
    path: Path, rank: int, after: int = 0, tail: int | None = None, is_over: IsOver | None = None
) -> AsyncIterator[bytes]:
    """The lines of a rank in a job's log, without what they begin with, in blocks as of `tailing.read`.

    Args:
        path: the log.
        rank: whose lines.
        after: only lines that begin there or later.
        tail: only so many of the last lines, looked for in the last `REACH` bytes, and what follows.
        is_over: whether nothing will be appended any more; None to stop at the end the file has now.
    """
    of_rank = selected(rank)
    last: deque[bytes] | None = None if tail is None else deque(maxlen=tail)
    reach = None if tail is None else REACH
    async for lines in tailing.lines(path, after, is_over, reach=reach, longest=LONGEST):
        own = [text + b"\n" for line in lines if (text := of_rank(line.text)) is not None]
        if last is None:
            yield b"".join(own)
        elif lines:
            last.extend(own)
        else:  # these were all; what comes now is new
            yield b"".join(last)
            last = None
    if last:
        yield b"".join(last)
