"""One checkpoint: a folder that is there with all of its content, or not at all.

::

    step-00000123/
        state.pt         torch.save of {"state": {...}, "random": {...}}
        manifest.json    {"format": 2, "commits": 123, "steps": 123,
                          "files": {"state.pt": {"bytes": ..., "sha256": ...}},
                          "sha256": of all the rest, as compact JSON in this order}

It is written under a hidden name beside its place, brought to the disk and renamed. `state.pt` can be read by
``torch.load(weights_only=True)``; values that need pickle are in it as bytes (see `portable`),
which `read` unpickles only after it has compared the checksum.
"""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import torch

from edt_hvd import torch_file
from edt_hvd.errors import CheckpointError, StateError
from edt_hvd.state.checkpoint import directory, fencing, portable

FORMAT = 2
"""Version of the format. The first one is read, too; its manifests have no checksum of their own."""

STATE, MANIFEST = "state.pt", "manifest.json"

_NOT_ABOUT = ("format", "commits", "files", "sha256")
"""What a manifest says of the checkpoint, not of the training."""

_NOT_FOR_FOLDERS = (errno.EBADF, errno.EINVAL, errno.ENOTSUP)
"""Errors of file systems that cannot sync a folder, such as FUSE and CIFS."""

PIECE = 2**20
"""Bytes that are hashed and written between two looks whether to go on."""


@dataclass(frozen=True)
class Content:
    """What a checkpoint holds.

    Attributes:
        commits: that had been made.
        state: the tree of all states, by the names of a `TorchState`.
        random: states of the coordinator's random number generators, as `random_state` saves them.
        about: what else the manifest says: `steps`, the optimizer steps done; epoch and step, say. Values
            are JSON's.
    """

    commits: int
    state: Mapping[str, Any]
    random: Mapping[str, Any]
    about: Mapping[str, Any]


class Cancelled(Exception):  # noqa: N818 - it is no error
    """The writer was cancelled."""


def write(folder: Path, content: Content, cancelled: threading.Event) -> tuple[Path, int]:
    """Write a checkpoint into `folder`, which is made if need be. One of the same number is replaced.

    Args:
        folder: of all checkpoints.
        content: what to write; its tensors are in host memory.
        cancelled: makes it stop soon when set.

    Returns:
        The checkpoint's path, and its size in bytes.

    Raises:
        Cancelled: it was cancelled.
        OSError: it could not be written, because the disk is full, say.
        StateError: a value cannot be pickled, or a later run of the job has begun, see `fencing`.

    In all these cases nothing of it is left.
    """
    fencing.check()
    folder.mkdir(parents=True, exist_ok=True)
    path = directory.path_of(folder, content.commits)
    beside = directory.temporary(path)
    beside.mkdir()
    try:
        tree = {"state": portable.encode(dict(content.state)), "random": dict(content.random)}
        with _written(beside / STATE) as file:
            digest = _save(tree, file, cancelled)
        size = (beside / STATE).stat().st_size
        manifest = {
            **content.about,
            "format": FORMAT,
            "commits": content.commits,
            "torch": torch.__version__,
            "files": {STATE: {"bytes": size, "sha256": digest}},
        }
        with _written(beside / MANIFEST) as file:
            signed = manifest | {"sha256": _digest(manifest)}
            file.write(json.dumps(signed, indent=2).encode() + b"\n")
        _sync_folder(beside)
        fencing.check()
        directory.put_in_place(beside, path)
        _sync_folder(folder)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return path, size


def read(path: Path) -> Content:
    """Read a checkpoint.

    Raises:
        CheckpointError: it is damaged or incomplete.
        StateError: it is whole, but this version, or this script, cannot read it.
        OSError: its files cannot be read.
    """
    manifest = _manifest(path)
    _check(path / STATE, manifest)
    try:
        tree = torch.load(path / STATE, map_location="cpu", weights_only=True)
        state = portable.decode(tree["state"])
        about = {key: value for key, value in manifest.items() if key not in _NOT_ABOUT}
        return Content(int(manifest["commits"]), state, tree["random"], about)
    except Exception as error:  # unpickling runs the code of the script's classes
        raise StateError(f"{STATE} is whole but cannot be loaded: {type(error).__name__}: {error}") from error


class _Sink:
    """A file for `torch.save`, which hashes what is written and can be cancelled."""

    def __init__(self, file: IO[bytes], cancelled: threading.Event) -> None:
        self._file = file
        self._cancelled = cancelled
        self.digest = hashlib.sha256()

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        view = memoryview(data).cast("B")
        for at in range(0, len(view), PIECE):
            if self._cancelled.is_set():
                raise Cancelled
            piece = view[at : at + PIECE]
            self.digest.update(piece)
            self._file.write(piece)
        return len(view)

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()


def _save(tree: Any, file: IO[bytes], cancelled: threading.Event) -> str:
    """Save the tree; its SHA-256."""
    sink = _Sink(file, cancelled)
    torch_file.save(tree, sink)
    return sink.digest.hexdigest()


@contextlib.contextmanager
def _written(path: Path) -> Iterator[IO[bytes]]:
    """A new file to write to; on disk when it is closed."""
    with path.open("xb") as file:
        yield file
        file.flush()
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NOT_FOR_FOLDERS:
            raise
    finally:
        os.close(descriptor)


def _manifest(path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((path / MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(f"it has no {MANIFEST}") from None
    except IsADirectoryError:
        raise CheckpointError(f"{MANIFEST} is damaged: it is a folder") from None
    except ValueError as error:  # JSON's and UTF-8's
        raise CheckpointError(f"{MANIFEST} is damaged: {error}") from error
    if not isinstance(manifest, dict):
        raise CheckpointError(f"{MANIFEST} is damaged: it is no object")
    checksum = manifest.pop("sha256", None)
    if checksum is not None and checksum != _digest(manifest):
        raise CheckpointError(f"{MANIFEST} is damaged: its SHA-256 is another")
    if manifest.get("format", FORMAT) not in (1, FORMAT):  # what else it has is that format's business
        raise StateError(f"it is of format {manifest['format']!r}, this edt_hvd reads formats 1 to {FORMAT}")
    for name in ("format", "commits", "steps"):
        if not isinstance(manifest.get(name), int):
            raise CheckpointError(f"{MANIFEST} is damaged: {name}={manifest.get(name)!r}")
    if checksum is None and manifest["format"] == FORMAT:
        raise CheckpointError(f"{MANIFEST} is damaged: it has no SHA-256 of its own")
    if not isinstance(manifest.get("files"), dict):
        raise CheckpointError(f"{MANIFEST} is damaged: it lists no files")
    return manifest


def _digest(manifest: Mapping[str, Any]) -> str:
    """The SHA-256 of a manifest without its own."""
    return hashlib.sha256(json.dumps(manifest).encode()).hexdigest()


def _check(path: Path, manifest: Mapping[str, Any]) -> None:
    expected = manifest["files"].get(path.name)
    if not isinstance(expected, dict):
        raise CheckpointError(f"{MANIFEST} is damaged: it does not list {path.name}")
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size != expected.get("bytes"):
                raise CheckpointError(f"{path.name} has {size} bytes instead of {expected.get('bytes')}")
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        raise CheckpointError(f"it has no {path.name}") from None
    except IsADirectoryError:
        raise CheckpointError(f"{path.name} is damaged: it is a folder") from None
    if found != expected.get("sha256"):
        raise CheckpointError(f"{path.name} is damaged: its SHA-256 is not the manifest's")
