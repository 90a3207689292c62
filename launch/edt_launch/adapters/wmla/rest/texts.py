"""Files as answers: text as it is, or in a JSON string; all of it, or its last lines."""

import codecs
import json
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from fastapi.responses import StreamingResponse

from edt_launch.service import tailing


def as_text(paths: Sequence[Path], last: int | None = None) -> StreamingResponse:
    """The files' content, one after the other; of each only the `last` lines if that is given."""
    return StreamingResponse(_blocks(paths, last), media_type="text/plain; charset=utf-8")


def as_json(paths: Sequence[Path], last: int | None = None) -> StreamingResponse:
    """The same as a JSON string."""
    return StreamingResponse(_escaped(_blocks(paths, last)), media_type="application/json")


async def _blocks(paths: Sequence[Path], last: int | None) -> AsyncIterator[bytes]:
    for path in paths:
        async for block in tailing.read(path, _start(last)):
            if block:
                yield block


def _start(last: int | None) -> Callable[[BinaryIO], int]:
    return lambda file: 0 if last is None else tailing.start_of_last_lines(file, last)


async def _escaped(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    yield b'"'
    async for block in blocks:
        yield json.dumps(decoder.decode(block))[1:-1].encode()
    yield json.dumps(decoder.decode(b"", final=True))[1:-1].encode() + b'"'
