"""One checkpoint on disk: written whole or not at all, and read only when it is whole."""

import contextlib
import errno
import io
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from edt_hvd.errors import CheckpointError, StateError
from edt_hvd.state.checkpoint import storage
from edt_hvd.state.checkpoint.storage import Cancelled, Content
from edt_messages.runs import JobRun

GO_ON = threading.Event()


def content(commits: int = 5, value: Any = 1.0) -> Content:
    state = {"model": {"weight": torch.full((1000,), value)}, "history": {1, 2}}
    return Content(commits, state, {"torch": torch.get_rng_state()}, {"steps": 7})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    written, _ = storage.write(tmp_path / "checkpoints", content(), GO_ON)
    return written


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_was_written_is_read(path: Path) -> None:
    found = storage.read(path)
    assert path.name == "step-00000005"
    assert names(path.parent) == [path.name]
    assert (found.commits, found.about["steps"]) == (5, 7)
    assert torch.equal(found.state["model"]["weight"], torch.ones(1000))
    assert found.state["history"] == {1, 2}
    assert torch.equal(found.random["torch"], content().random["torch"])


@pytest.mark.parametrize(
    "newest, is_written",
    [("a 1", True), ("a 2", True), ("a 3", False), ("b 1", False), ("", True), (None, True)],
)
@pytest.mark.parametrize("begins", ["before", "meanwhile"])
def test_a_worker_of_an_earlier_run_writes_nothing(
    newest: str | None, is_written: bool, begins: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = path.parents[1] / "job_run"
    for name, value in (JobRun("a", 2).variables | {"EDT_RUN_FILE": str(file)}).items():
        monkeypatch.setenv(name, value)

    def begin() -> None:
        if newest is not None:
            file.write_text(JobRun(newest[0], int(newest[2:])).text if newest else "nonsense")

    save = storage._save
    monkeypatch.setattr(storage, "_save", lambda *given: (begin(), save(*given))[1])
    if begins == "before":
        begin()
    refused = contextlib.nullcontext() if is_written else pytest.raises(StateError, match="run 2 of the job")
    with refused:
        storage.write(path.parent, content(6), GO_ON)
    assert names(path.parent) == [path.name, *["step-00000006"] * is_written]


def truncate(path: Path) -> None:
    os.truncate(path / "state.pt", 1000)


def flip_a_bit(path: Path) -> None:
    data = bytearray((path / "state.pt").read_bytes())
    data[len(data) // 2] ^= 1
    (path / "state.pt").write_bytes(data)


def make_a_folder_of(file: Path) -> None:
    file.unlink()
    file.mkdir()


def halve_the_manifest(path: Path) -> None:
    text = (path / "manifest.json").read_text()
    (path / "manifest.json").write_text(text[: len(text) // 2])


def edit(path: Path, **changes: Any) -> None:
    """Write another manifest: one of the first format, unless the changes say otherwise."""
    manifest = json.loads((path / "manifest.json").read_text())
    del manifest["sha256"]
    (path / "manifest.json").write_text(json.dumps(manifest | {"format": 1} | changes))


@pytest.mark.parametrize(
    "spoil, said",
    [
        (truncate, "state.pt has 1000 bytes instead of"),
        (flip_a_bit, "its SHA-256 is not the manifest's"),
        (lambda path: (path / "state.pt").unlink(), r"it has no state\.pt"),
        (lambda path: (path / "manifest.json").unlink(), r"it has no manifest\.json"),
        (lambda path: make_a_folder_of(path / "state.pt"), r"state\.pt is damaged: it is a folder"),
        (lambda path: (path / "manifest.json").write_text("[1]"), "it is no object"),
        (lambda path: (path / "manifest.json").write_text("{}"), "format=None"),
        (lambda path: edit(path, commits=None), "commits=None"),
        (lambda path: edit(path, files=None), "it lists no files"),
        (halve_the_manifest, r"manifest\.json is damaged"),
        (lambda path: edit(path, files={}), r"does not list state\.pt"),
        (lambda path: edit(path, steps=None), "steps=None"),
        (lambda path: edit(path, format=2), "it has no SHA-256 of its own"),
    ],
)
def test_what_is_damaged_is_not_read(path: Path, spoil: Callable[[Path], None], said: str) -> None:
    spoil(path)
    with pytest.raises(CheckpointError, match=said):
        storage.read(path)


def test_another_format_is_not_damage(path: Path) -> None:
    edit(path, format=3, files=None)
    with pytest.raises(StateError, match="it is of format 3, this edt_hvd reads formats 1 to 2"):
        storage.read(path)


def test_the_first_format_is_read(path: Path) -> None:
    edit(path, format=1)
    assert storage.read(path).about["steps"] == 7


def test_no_bit_of_the_manifest_flips_unnoticed(path: Path) -> None:
    manifest, found = path / "manifest.json", storage.read(path).about
    whole = manifest.read_bytes()
    for bit in range(0, 8 * len(whole), 7):
        data = bytearray(whole)
        data[bit // 8] ^= 1 << bit % 8
        manifest.write_bytes(data)
        with contextlib.suppress(CheckpointError):  # a blank may become another one
            assert storage.read(path).about == found, data


class Choosy:
    """A value of a script that has been changed since."""

    def __setstate__(self, state: Any) -> None:
        raise TypeError("the first argument is gone")

    def __getstate__(self) -> Any:
        return {"a": 1}


def test_what_the_script_refuses_is_not_damage(tmp_path: Path) -> None:
    path, _ = storage.write(tmp_path, Content(1, {"c": Choosy()}, {}, {"steps": 1}), GO_ON)
    with pytest.raises(StateError, match="cannot be loaded: TypeError: the first argument is gone"):
        storage.read(path)


class FullDisk(io.BytesIO):
    """A file of which only so many bytes can be written."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room

    def write(self, data: Any) -> int:
        if self.tell() + len(data) > self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(data)


@pytest.mark.parametrize("room", [0, 100, 5000])
def test_a_full_disk_is_an_os_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(storage.Path, "open", lambda *_: FullDisk(room))
    with pytest.raises(OSError, match="No space left") as caught:
        storage.write(tmp_path, content(), GO_ON)
    assert caught.value.errno == errno.ENOSPC
    assert names(tmp_path) == []


def test_a_cancelled_write_leaves_nothing(tmp_path: Path) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(Cancelled):
        storage.write(tmp_path, content(), cancelled)
    assert names(tmp_path) == []
