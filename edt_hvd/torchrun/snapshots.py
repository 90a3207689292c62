"""Snapshots of a program's state in the memory of the hosts, for the next generation of its workers."""

import io
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from edt_hvd.torchrun import worker

FOLDER = "EDT_SNAPSHOTS"
"""Names the folder in memory; the agent of the host removes it with the job."""

PIECE = 2**28
"""Bytes that are sent at a time."""

Stamp = tuple[int, int]
"""What orders snapshots: the generation, and how many calls of `snapshot` there were in it."""

_NONE: Stamp = (0, 0)


class Snapshots:
    """The snapshots of one host: the newest is kept."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._calls = 0
        self._taken_at = time.monotonic()

    def is_wanted(self, now: float, every: float) -> bool:
        """Whether this call is one that takes a snapshot."""
        self._calls += 1
        is_due = worker.current is not None and worker.current.is_due
        return is_due or now - self._taken_at >= every

    def take(self, now: float, generation: int, state: Any) -> None:
        """Keep a state; an older one is kept until it is written.

        Raises:
            OSError: it does not fit into memory.
        """
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        stamp = generation, self._calls
        part = self._path(stamp).with_suffix(f".{os.getpid()}")  # other nodes may be on this host
        torch.save(state, part)
        part.rename(self._path(stamp))
        for older in self._all():
            if older < stamp:
                self._path(older).unlink(missing_ok=True)
        self._taken_at = now

    def newest(self) -> Stamp:
        """Which one is there; (0, 0) for none."""
        return max(self._all(), default=_NONE)

    def read(self, stamp: Stamp) -> bytes:
        """The bytes of a snapshot."""
        return self._path(stamp).read_bytes()

    def _path(self, stamp: Stamp) -> Path:
        return self._folder / f"{stamp[0]}-{stamp[1]}"

    def _all(self) -> list[Stamp]:
        paths = self._folder.iterdir() if self._folder.is_dir() else ()
        whole = [path.name.split("-") for path in paths if not path.suffix]
        return [(int(generation), int(calls)) for generation, calls in whole]


_snapshots: Snapshots | None = None


def _here() -> Snapshots | None:
    global _snapshots
    folder = os.environ.get(FOLDER)
    if _snapshots is None and folder:
        _snapshots = Snapshots(Path(folder))
    return _snapshots


def snapshot(state: Callable[[], Any], every: float = 30.0) -> bool:
    """Keep what `state` returns in this host's memory, for the workers after a resize or a loss.

    To be called on every rank after each optimizer step. Local rank 0 takes a snapshot every so many seconds,
    and when a resize is due, which then need not wait for a checkpoint. Without `edt torchrun`, nothing
    happens.

    Args:
        state: gives tensors, numbers, strings and containers of them, as `torch.load` reads them by default.
        every: seconds between two snapshots, at least 0.

    Returns:
        Whether a snapshot was taken.

    Raises:
        OSError: the state does not fit into /dev/shm of this host.
    """
    here, now = _here(), time.monotonic()
    if here is None or int(os.environ["LOCAL_RANK"]) != 0 or not here.is_wanted(now, every):
        return False
    here.take(now, int(os.environ["EDT_GENERATION"]), state())
    if worker.current is not None:
        worker.current.hold_if_due()
    return True


def latest_snapshot() -> Any:
    """The newest snapshot that a host of this world has; None if there is none. A collective operation.

    It is to be called on all ranks after `init_process_group`. Tensors are on the CPU.
    """
    here = _here()
    mine = _NONE if here is None else here.newest()
    stamps: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(stamps, mine)
    newest = max(stamps)
    if newest == _NONE:
        return None
    content = here.read(newest) if here is not None and mine == newest else b""
    if any(stamp != newest for stamp in stamps):
        content = _broadcast(content, stamps.index(newest))
    return torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)


def _broadcast(content: bytes, source: int) -> bytes:
    """What rank `source` has, on all ranks."""
    count: list[Any] = [-(-len(content) // PIECE)]
    dist.broadcast_object_list(count, source)
    pieces = []
    for number in range(count[0]):
        piece: list[Any] = [content[number * PIECE :][:PIECE]]
        dist.broadcast_object_list(piece, source)
        pieces.append(piece[0])
    return b"".join(pieces)
