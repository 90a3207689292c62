import io
import os
import zipfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edt_launch.wmla.answers import zipping
from edt_launch.wmla.answers.zipping import Member

names = st.text(st.characters(exclude_categories=["C"], exclude_characters="/\\."), min_size=1, max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
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


def test_files_that_change_meanwhile_do_not_change_the_size(tmp_path: Path) -> None:
    for name in ("grows", "shrinks", "goes"):
        (tmp_path / name).write_bytes(b"x" * 1000)
    packed = zipping.members((name, tmp_path / name) for name in ("grows", "shrinks", "goes"))
    (tmp_path / "grows").write_bytes(b"x" * 2000)
    (tmp_path / "shrinks").write_bytes(b"x")
    (tmp_path / "goes").unlink()
    content = b"".join(zipping.pack(packed))
    assert len(content) == zipping.size_of(packed)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.read("grows") == b"x" * 1000
        assert archive.read("shrinks") == b"x" + bytes(999)
        assert archive.read("goes") == bytes(1000)


def test_only_regular_files_are_packed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert zipping.members((path.name, path) for path in tmp_path.iterdir()) == []
    assert zipping.members([("gone", tmp_path / "gone")]) == []


def test_sizes_beyond_four_gigabytes_are_written_in_full() -> None:
    large = Member(b"large", Path("/nowhere"), 5 * 2**30, 0.0)
    assert zipping.size_of([large]) > 5 * 2**30
    entry = zipping._entry(large, 6 * 2**30, 0)
    assert (5 * 2**30).to_bytes(8, "little") * 2 + (6 * 2**30).to_bytes(8, "little") in entry


def test_times_before_1980_and_after_2107_are_possible() -> None:
    assert zipping._date(-1e12) == (0, 33)
    assert zipping._date(1e12)[1] >> 9 == 127
