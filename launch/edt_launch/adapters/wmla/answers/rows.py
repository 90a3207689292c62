"""Rows of a log that notebooks read as a table: those of the training."""

import re
from collections.abc import AsyncIterator

LONGEST = 2**12
"""Bytes of a line that are looked at together; what is longer is no row."""

_TEST = re.compile(rb"\[[^\]\n]{1,40}\] Test,")


async def training_rows(blocks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The content without the lines of validations.

    These have fewer columns: clients of 1.2.x would read the test loss as a number of steps. WMLA 1.2.x does
    not write them into this log.
    """
    rest, is_within = b"", False
    async for block in blocks:
        *lines, rest = (rest + block).split(b"\n")
        kept = [line for line in lines[:1] if is_within or not _TEST.match(line)]
        kept += [line for line in lines[1:] if not _TEST.match(line)]
        is_within = is_within and not lines
        yield b"".join(line + b"\n" for line in kept)
        if len(rest) > LONGEST and (is_within or not _TEST.match(rest)):
            yield rest
            rest, is_within = b"", True
    if is_within or not _TEST.match(rest):
        yield rest
