"""Following files that grow, for answers that go on as long as a job."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from anyio.to_thread import run_sync

from edt_launch.core.files.growing_file import GrowingFile, Line
from edt_launch.core.files.lines import MAX_LINE_BYTES

PAUSE = 0.25
"""Seconds between two looks at a file."""

IsOver = Callable[[], Awaitable[bool]]
Found = TypeVar("Found", bytes, list[Line])


async def read(
    path: Path, start: int | Callable[[BinaryIO], int] = 0, is_over: IsOver | None = None
) -> AsyncIterator[bytes]:
    """Blocks of a file, and of what is appended to it; an empty one whenever nothing has come for `PAUSE`.

    Args:
        path: the file; it may come later if it is followed. What is no file, or may not be read, is empty.
        start: where to begin.
        is_over: whether nothing will be appended any more; None to stop at the end the file has now.
    """
    with GrowingFile(path, start) as file:
        async for block in _looks(file, file.read, is_over):
            yield block or b""


async def lines(
    path: Path,
    start: int = 0,
    is_over: IsOver | None = None,
    *,
    reach: int | None = None,
    longest: int = MAX_LINE_BYTES,
) -> AsyncIterator[list[Line]]:
    """The whole lines of a file, like `read`: those of a look at a time, none after a pause.

    `reach` and `longest` are those of `GrowingFile`.
    """
    file = GrowingFile(path, start, reach=reach, longest=longest)
    async for found in _looks(file, file.lines, is_over):
        yield found or []


async def _looks(
    file: GrowingFile, look: Callable[[], Found], is_over: IsOver | None
) -> AsyncIterator[Found | None]:
    """What each look finds; None when nothing has come for `PAUSE`."""
    while True:
        over = True if is_over is None else await is_over()
        is_behind = file.has_changed()  # spares a thread most of the time
        while is_behind:
            try:
                found = await run_sync(look)
            except PermissionError:
                break
            if found:
                yield found
            is_behind = file.is_behind
        if over:
            return
        yield None
        await asyncio.sleep(PAUSE)
