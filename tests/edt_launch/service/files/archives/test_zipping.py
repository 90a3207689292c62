import io
import os
import zipfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edt_launch.service.files.archives import zipping
from edt_launch.service.files.archives.zipping import ChangedError
from no_files import put

LARGE = 3 * zipping.BLOCK

names = st.text(st.characters(exclude_categories=["C"], exclude_characters="/\\."), min_size=1, max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(names, st.binary(max_size=200), max_size=5))
def test_the_size_is_known_and_everything_is_in_it(tmp_path: Path, files: dict[str, bytes]) -> None:
    packed = []
    for number, (name, content) in enumerate(files.items()):
        path = tmp_path / str(number)
        path.write_bytes(content)
        packed += zipping.members([(f"model/{name}", path)])
    content = b"".join(zipping.pack(packed))
    assert len(content) == zipping.size_of(packed)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert {name: archive.read(f"model/{name}") for name in files} == files
        assert archive.namelist() == [f"model/{name}" for name in files]


CHANGES: Mapping[str, Callable[[Path], object]] = {
    "grows": lambda path: path.write_bytes(bytes(LARGE + 1)),
    "shrinks": lambda path: path.write_bytes(b"x"),
    "goes": Path.unlink,
    "becomes a pipe": partial(put, "pipe"),
    "becomes a link": partial(put, "link"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_meanwhile_ends_it(tmp_path: Path, change: str) -> None:
    path = tmp_path / "model"
    path.write_bytes(b"x" * LARGE)
    packed = zipping.members([("model", path)])
    CHANGES[change](path)
    with pytest.raises(ChangedError, match="model"):
        list(zipping.pack(packed))


def test_only_regular_files_are_packed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert zipping.members((path.name, path) for path in tmp_path.iterdir()) == []
    assert zipping.members([("gone", tmp_path / "gone")]) == []


@pytest.mark.parametrize("size, count", [(100, 3), (101, 3), (0, 4), (101, 4)])
def test_the_size_is_known_beyond_the_limits_of_plain_zips(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, count: int
) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 100)
    monkeypatch.setattr(zipfile, "ZIP_FILECOUNT_LIMIT", 3)
    path = tmp_path / "content"
    path.write_bytes(b"x" * size)
    packed = zipping.members((str(number), path) for number in range(count))
    content = b"".join(zipping.pack(packed))
    assert len(content) == zipping.size_of(packed)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        assert [info.file_size for info in archive.infolist()] == [size] * count
