"""Files of a job on a host that does not see its output directory."""

import hashlib
import io
import os
import queue
import tarfile
from pathlib import Path
from typing import Any

import pytest

from edt_launch.agent.protocol import CODE, MAX_PIECE, Code, Fetch, Fetched, Piece, Put, Stored, Want
from edt_launch.agent.transfer import files
from edt_launch.agent.transfer.files import Files


@pytest.fixture
def reports() -> "queue.Queue[Any]":
    return queue.Queue()


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "EDT_JOB": "abc"}


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


def test_a_file_comes_piece_by_piece_and_is_there_when_it_is_whole(
    environment: dict[str, str], reports: "queue.Queue[Any]"
) -> None:
    host = Files(environment, "h1", reports.put)
    data = os.urandom(MAX_PIECE + 10)
    host.put(Put("checkpoint/step-1/state.pt", digest(data), len(data)))
    for offset in (0, MAX_PIECE):
        assert reports.get() == Want("checkpoint/step-1/state.pt", offset)
        assert not (host.output / "checkpoint/step-1/state.pt").exists()
        host.take(Piece("checkpoint/step-1/state.pt", data[offset : offset + MAX_PIECE]))
    assert reports.get() == Stored("checkpoint/step-1/state.pt")
    assert (host.output / "checkpoint/step-1/state.pt").read_bytes() == data
    host.fetch(Fetch("checkpoint/step-1/state.pt", MAX_PIECE))
    assert reports.get() == Fetched("checkpoint/step-1/state.pt", MAX_PIECE, data[MAX_PIECE:])
    host.close()
    assert not host.root.exists()


@pytest.mark.parametrize("piece, reason", [(b"other", "another SHA-256"), (b"", "cannot read it any more")])
def test_a_file_that_is_not_what_was_promised_is_not_kept(
    environment: dict[str, str], reports: "queue.Queue[Any]", piece: bytes, reason: str
) -> None:
    host = Files(environment, "h1", reports.put)
    host.put(Put("a", digest(b"right"), 5))
    reports.get()
    host.take(Piece("a", piece))
    assert reason in (reports.get().error or "")
    assert not any(path.is_file() for path in host.output.rglob("*"))
    host.close()


@pytest.mark.parametrize("path", ["../lock", "/etc/passwd", "", "a/../../lock"])
def test_nothing_outside_the_folder_is_read_or_written(
    environment: dict[str, str], reports: "queue.Queue[Any]", path: str
) -> None:
    host = Files(environment, "h1", reports.put)
    host.put(Put(path, digest(b""), 0))
    host.fetch(Fetch(path, 0))
    assert [reports.get().error for _ in range(2)] == ["it is not below the output directory"] * 2
    host.close()


def test_a_full_disk_is_reported_and_leaves_nothing(
    environment: dict[str, str], reports: "queue.Queue[Any]", monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Files(environment, "h1", reports.put)
    host.put(Put("a", digest(b"x"), 1))
    reports.get()

    def full(receipt: Any, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files._Receipt, "add", full)
    host.take(Piece("a", b"x"))
    assert reports.get().error == f"{host.output}/a: No space left on device"
    host.close()


def test_code_is_unpacked_and_not_sent_again(
    environment: dict[str, str], reports: "queue.Queue[Any]"
) -> None:
    data = archive({"train.py": b"1", "pkg/a.py": b"2"})
    code = Code("/home/ann/code", digest(data), len(data))
    host = Files(environment, "h1", reports.put)
    assert not host.have_code(code)
    assert reports.get() == Want(CODE, 0)
    host.take(Piece(CODE, data))
    assert unpacked(host)
    assert reports.get() == Stored(CODE)
    assert (host.code / "pkg/a.py").read_bytes() == b"2"
    host.close()
    again = Files(environment, "h2", reports.put)
    assert not again.have_code(code)
    assert unpacked(again)
    assert reports.get() == Stored(CODE)
    again.close()


def test_a_damaged_archive_is_not_used_and_removed(
    environment: dict[str, str], reports: "queue.Queue[Any]", tmp_path: Path
) -> None:
    host = Files(environment, "h1", reports.put)
    kept = tmp_path / "cache/edt/code" / digest(b"right")
    kept.write_bytes(b"wrong")
    host.have_code(Code("/home/ann/code", digest(b"right"), 5))
    assert not unpacked(host)
    assert "its SHA-256 is another" in reports.get().error
    assert not kept.exists()
    host.close()


def test_what_agents_that_are_gone_have_left_is_removed(
    environment: dict[str, str], reports: "queue.Queue[Any]", tmp_path: Path
) -> None:
    running = Files(environment, "h1", reports.put)
    left, old = tmp_path / "cache/edt/jobs/gone.h1", tmp_path / "cache/edt/code/old"
    left.mkdir()
    old.write_bytes(b"")
    os.utime(old, (0, 0))
    Files(environment, "h2", reports.put).close()
    assert running.root.exists()
    assert not left.exists()
    assert not old.exists()
    running.close()
