import asyncio
from pathlib import Path

from edt_launch.service.files.tailing import lines, read


async def collect(path: Path) -> bytes:
    return b"".join([block async for block in read(path)])


def test_without_following_it_ends_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    assert asyncio.run(collect(path)) == b""
    path.write_bytes(b"x" * 200_000)
    assert asyncio.run(collect(path)) == b"x" * 200_000


def test_what_is_appended_comes_until_it_is_over(tmp_path: Path) -> None:
    path, over = tmp_path / "log", False

    async def is_over() -> bool:
        return over

    async def follow() -> list[bytes]:
        nonlocal over
        blocks = read(path, 0, is_over)
        found = [await anext(blocks)]
        path.write_bytes(b"first")
        found += [await anext(blocks), await anext(blocks)]
        path.write_bytes(b"new")  # by a program that writes its log anew
        found += [await anext(blocks), await anext(blocks)]
        with path.open("ab") as file:
            file.write(b"second")
        over = True
        return [*found, *[block async for block in blocks]]

    assert asyncio.run(follow()) == [b"", b"first", b"", b"new", b"", b"second"]


def test_lines_come_whole_with_where_the_next_one_begins(tmp_path: Path) -> None:
    path = tmp_path / "events"
    path.write_bytes(b"a\nbc\nhalf")

    async def follow() -> list[object]:
        return [found async for found in lines(path, 2)]

    assert asyncio.run(follow()) == [[(b"bc", 5)]]
