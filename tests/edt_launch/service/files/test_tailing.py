import asyncio
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.service.files import tailing
from edt_launch.service.files.tailing import read, start_of_last_lines
from no_files import KINDS, put


@given(st.lists(st.sampled_from([b"", b"a", b"bb"])), st.booleans(), st.integers(0, 12), st.integers(1, 7))
def test_the_last_lines_are_found_whatever_the_blocks(
    lines: list[bytes], has_end: bool, count: int, size: int
) -> None:
    text = b"\n".join(lines) + (b"\n" if has_end else b"")
    before = tailing.BLOCK
    tailing.BLOCK = size
    try:
        start = start_of_last_lines(io.BytesIO(text), count)
    finally:
        tailing.BLOCK = before
    kept = text.splitlines(keepends=True)
    assert text[start:] == b"".join(kept[len(kept) - min(count, len(kept)) :])


async def collect(path: Path) -> bytes:
    return b"".join([block async for block in read(path, lambda _: 0)])


def test_without_following_it_ends_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert asyncio.run(collect(path)) == b""
    path.write_bytes(b"x" * 200_000)
    assert asyncio.run(collect(path)) == b"x" * 200_000


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_is_empty(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "log"
    put(kind, path)
    assert asyncio.run(collect(path)) == b""


def test_what_is_appended_comes_until_it_is_over(tmp_path: Path) -> None:
    path, over = tmp_path / "log", False

    async def is_over() -> bool:
        return over

    async def follow() -> list[bytes]:
        nonlocal over
        blocks = read(path, lambda _: 0, is_over)
        found = [await anext(blocks)]
        path.write_bytes(b"first")
        found += [await anext(blocks), await anext(blocks)]
        with path.open("ab") as file:
            file.write(b"second")
        over = True
        return [*found, *[block async for block in blocks]]

    assert asyncio.run(follow()) == [b"", b"first", b"", b"second"]
