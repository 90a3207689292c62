from collections.abc import AsyncIterator, Iterable

import anyio
import pytest

from edt_launch.adapters.wmla.answers.rows import training_rows
from played import ELOG, TEST_LINE


def kept(blocks: Iterable[bytes]) -> bytes:
    async def collect() -> bytes:
        async def given() -> AsyncIterator[bytes]:
            for block in blocks:
                yield block

        return b"".join([block async for block in training_rows(given())])

    return anyio.run(collect)


TRAIN, TEST = ELOG.encode(), TEST_LINE.encode()


@pytest.mark.parametrize("size", [1, 7, 100, 10**6])
def test_rows_of_validations_are_left_out(size: int) -> None:
    content = TRAIN + TEST + TRAIN + b"Test, of something else\n" + TEST + TEST[:-1]
    blocks = [content[at : at + size] for at in range(0, len(content), size)]
    assert kept(blocks) == TRAIN + TRAIN + b"Test, of something else\n"
