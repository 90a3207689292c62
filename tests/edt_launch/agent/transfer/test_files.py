"""Files of a job on a host that does not see its output directory."""

import contextlib
import hashlib
import io
import os
import queue
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edt_launch.agent.protocol import CODE, MAX_PIECE, Code, Fetch, Fetched, Piece, Put, Stored, Want
from edt_launch.agent.transfer import files
from edt_launch.agent.transfer.files import Files

Reports = queue.Queue[Any]


@pytest.fixture
def reports() -> Reports:
    return queue.Queue()


@pytest.fixture
def join(tmp_path: Path, reports: Reports) -> Iterator[Callable[[str], Files]]:
    """Gives hosts of the job their folders."""
    environment = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "EDT_JOB": "abc"}
    with contextlib.ExitStack() as stack:

        def join(name: str) -> Files:
            files = Files(environment, name, reports.put)
            stack.callback(files.close)
            return files

        yield join


@pytest.fixture
def host(join: Callable[[str], Files]) -> Files:
    return join("h1")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def archive(names: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, content in names.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return out.getvalue()


def unpacked(host: Files) -> bool:
    """Wait for the process that unpacks, as an agent does."""
    assert host._unpacking is not None
    pid = host._unpacking.pid
    os.waitpid(pid, 0)
    return host.unpacked(pid)


def test_a_file_comes_piece_by_piece_and_is_there_when_it_is_whole(host: Files, reports: Reports) -> None:
    name, data = "checkpoint/step-1/state.pt", os.urandom(MAX_PIECE + 10)
    host.put(Put(name, digest(data), len(data)))
    for offset in (0, MAX_PIECE):
        assert reports.get() == Want(name, offset)
        assert not (host.output / name).exists()
        host.take(Piece(name, data[offset : offset + MAX_PIECE]))
    assert reports.get() == Stored(name)
    assert (host.output / name).read_bytes() == data
    host.fetch(Fetch(name, MAX_PIECE))
    assert reports.get() == Fetched(name, MAX_PIECE, data[MAX_PIECE:])
    host.close()
    assert not host.root.exists()


@pytest.mark.parametrize("piece, reason", [(b"other", "another SHA-256"), (b"", "cannot read it any more")])
def test_a_file_that_is_not_what_was_promised_is_not_kept(
    host: Files, reports: Reports, piece: bytes, reason: str
) -> None:
    host.put(Put("a", digest(b"right"), 5))
    reports.get()
    host.take(Piece("a", piece))
    assert reason in (reports.get().error or "")
    assert not any(path.is_file() for path in host.output.rglob("*"))


@pytest.mark.parametrize("path", ["../lock", "/etc/passwd", "", "a/../../lock"])
def test_nothing_outside_the_folder_is_read_or_written(host: Files, reports: Reports, path: str) -> None:
    host.put(Put(path, digest(b""), 0))
    host.fetch(Fetch(path, 0))
    assert [reports.get().error for _ in range(2)] == ["it is not below the output directory"] * 2


def test_a_full_disk_is_reported_and_leaves_nothing(
    host: Files, reports: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.put(Put("a", digest(b"x"), 1))
    reports.get()

    def full(receipt: Any, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files._Receipt, "add", full)
    host.take(Piece("a", b"x"))
    assert reports.get().error == f"{host.output}/a: No space left on device"


def test_code_is_unpacked_and_not_sent_again(join: Callable[[str], Files], reports: Reports) -> None:
    data = archive({"train.py": b"1", "pkg/a.py": b"2"})
    code = Code("/home/ann/code", digest(data), len(data))
    host = join("h1")
    assert not host.have_code(code)
    assert reports.get() == Want(CODE, 0)
    host.take(Piece(CODE, data))
    assert unpacked(host)
    assert reports.get() == Stored(CODE)
    assert (host.code / "pkg/a.py").read_bytes() == b"2"
    host.close()
    again = join("h2")
    assert not again.have_code(code)
    assert unpacked(again)
    assert reports.get() == Stored(CODE)


def test_a_damaged_archive_is_not_used_and_removed(host: Files, reports: Reports, tmp_path: Path) -> None:
    kept = tmp_path / "cache/edt/code" / digest(b"right")
    kept.write_bytes(b"wrong")
    host.have_code(Code("/home/ann/code", digest(b"right"), 5))
    assert not unpacked(host)
    assert "its SHA-256 is another" in reports.get().error
    assert not kept.exists()


def test_what_agents_that_are_gone_have_left_is_removed(
    host: Files, join: Callable[[str], Files], tmp_path: Path
) -> None:
    left, old = tmp_path / "cache/edt/jobs/gone.h1", tmp_path / "cache/edt/code/old"
    left.mkdir()
    old.write_bytes(b"")
    os.utime(old, (0, 0))
    join("h2")
    assert host.root.exists()
    assert not left.exists()
    assert not old.exists()
