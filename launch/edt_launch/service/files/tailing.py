"""Reading files that grow, block by block, with memory for one block."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from anyio.to_thread import run_sync

from edt_launch.core.lines import LineSplitter
from edt_launch.core.plain_files import NoFileError, open_file

BLOCK = 2**16
"""Bytes that are read at a time."""

REACH = 2**26
"""Bytes before the end of a file in which something is looked for; what is further away is not found."""

PAUSE = 0.25
"""Seconds between two looks at a file."""

IsOver = Callable[[], Awaitable[bool]]


def start_of_last_lines(file: BinaryIO, lines: int) -> int:
    """Where the last `lines` lines begin, `REACH` bytes before the end at most; one without an end counts."""
    end = file.seek(0, os.SEEK_END)
    first = max(0, end - REACH)
    at, missing = end, lines
    while at > first and missing >= 0:
        size = min(BLOCK, at - first)
        at -= size
        file.seek(at)
        block = file.read(size)
        if at + size == end and block.endswith(b"\n"):
            missing += 1  # the end of the last line begins none
        found = block.count(b"\n")
        if found < missing:
            missing -= found
            continue
        position = len(block)
        for _ in range(missing):
            position = block.rindex(b"\n", 0, position)
        return at + position + 1 if missing else end
    return first


def last_lines(path: Path, lines: int, most: int) -> tuple[int, list[bytes]]:
    """The last lines of a file, without ends, and where they begin; of long ones, the last bytes' whole ones.

    Raises:
        FileNotFoundError, NoFileError: it is not there, or no file.
    """
    with open_file(path, buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        start = start_of_last_lines(file, lines)
        is_cut = end - start > most
        file.seek(end - most if is_cut else start)
        content = file.read(most)
    if is_cut:
        _, _, rest = content.partition(b"\n")
        start, content = end - len(rest), rest
    return start, content.removesuffix(b"\n").split(b"\n") if content else []


def recent_lines(path: Path) -> Iterator[bytes]:
    """The whole lines in the last `REACH` bytes of a file, without those that are too long."""
    with open_file(path, buffering=0) as file:
        start = max(0, os.fstat(file.fileno()).st_size - REACH)
        file.seek(start)
        lines = LineSplitter(start, is_within=start > 0)
        while block := file.read(BLOCK):
            yield from lines.feed(block)


async def read(
    path: Path, start: Callable[[BinaryIO], int], is_over: IsOver | None = None
) -> AsyncIterator[bytes]:
    """Blocks of a file, and of what is appended to it; an empty one whenever nothing has come for `PAUSE`.

    Args:
        path: the file; it may come later if it is followed. What is no file, or may not be read, is empty.
        start: tells where to begin.
        is_over: whether nothing will be appended any more; None to stop at the end the file has now.
    """
    file: BinaryIO | None = None
    try:
        while True:
            over = True if is_over is None else await is_over()
            if file is None:
                file = await run_sync(_open, path, start)
            while file is not None and (block := await _more(file)):
                yield block
            if over:
                return
            yield b""
            await asyncio.sleep(PAUSE)
    finally:
        if file is not None:
            file.close()


async def _more(file: BinaryIO) -> bytes:
    if os.fstat(file.fileno()).st_size <= file.tell():  # spares a thread most of the time
        return b""
    return await run_sync(file.read, BLOCK)


def _open(path: Path, start: Callable[[BinaryIO], int]) -> BinaryIO | None:
    try:
        file = open_file(path, buffering=0)
    except (FileNotFoundError, NotADirectoryError, PermissionError, NoFileError):
        return None
    file.seek(start(file))
    return file
