import asyncio
from pathlib import Path

from edt_launch.service.files.tailing import read


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
