"""Sending the state to the workers that do not have it, from those that do.

One small all-reduce exchanges which workers have a state, its progress and its size. All go on from rank 0's
state. Every worker with a state of the same progress and form has the same bytes, so all of them send, each
its part, to the others. Where rank 0 alone has it, it is broadcast.

The state travels in pieces: Gloo and MPI count the elements of a call in 32 bits, each piece is a heartbeat,
and a loss ends the transfer within one piece. Nobody has a second copy of the whole: a broadcast goes from
the memory of large tensors to that of the receivers' new ones, which the objects are then loaded from. At the
end a checksum of what was sent is compared with one of what has arrived.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import horovod.torch as hvd
import numpy as np
import torch
from numpy.typing import NDArray

from edt_hvd.errors import StateError
from edt_hvd.reduction.header import gather
from edt_hvd.state import flat
from edt_hvd.state.flat import ALIGNMENT, FlatTree
from edt_hvd.world import stages

CHUNK = 2**25
"""Bytes that one worker sends to another at a time, at most."""

AHEAD = 8
"""Pieces that are under way at a time: the workers agree on the next ones while one travels."""

MAX_CALL_BYTES = 2**28
"""Bytes that one worker sends or receives in a call, at most."""

_ROW = np.dtype([(name, np.int64) for name in ("holds", "progress", "layout", "skeleton", "tensors")])
_SUMS = np.dtype([(name, np.int64) for name in ("sent", "received")])


@dataclass(frozen=True)
class Plan:
    """Which worker sends which of the state's bytes to which others. The skeleton's come first.

    Attributes:
        parts: for each worker the range that it sends; empty for who does not.
        receivers: ranks that get all of them.
        skeleton: bytes of the skeleton.
    """

    parts: tuple[range, ...]
    receivers: tuple[int, ...]
    skeleton: int

    @property
    def size(self) -> int:
        """Bytes of the whole state."""
        return max(part.stop for part in self.parts)

    @property
    def senders(self) -> tuple[int, ...]:
        """Ranks that send."""
        return tuple(rank for rank, part in enumerate(self.parts) if part)

    @property
    def chunk_size(self) -> int:
        """Bytes that one worker sends to another in a round, at most."""
        return min(CHUNK, MAX_CALL_BYTES // len(self.parts) // ALIGNMENT * ALIGNMENT)

    def chunk(self, sender: int, number: int) -> range:
        """What a worker sends in one of the rounds."""
        return self.parts[sender][number * self.chunk_size : (number + 1) * self.chunk_size]

    @property
    def rounds(self) -> int:
        """How often every worker sends up to `chunk_size` bytes."""
        return -(-max(map(len, self.parts)) // self.chunk_size)


def plan(rows: NDArray[np.void]) -> Plan:
    """The plan, given what each worker has.

    Args:
        rows: one a worker: whether it `holds` a state of the training under way, its `progress` in commits,
            the `layout` of its tensors, and the bytes of its `skeleton` and its `tensors`. Where rank 0 holds
            none, its own is a new one, which nobody else has. The skeleton is rank 0's to send.
    """
    root = rows[0]
    same = ["progress", "layout", "tensors"]
    holders = [
        rank == 0 or bool(root["holds"] and row["holds"] and all(row[name] == root[name] for name in same))
        for rank, row in enumerate(rows)
    ]
    skeleton, tensors, count = int(root["skeleton"]), int(root["tensors"]), sum(holders)
    blocks = tensors // ALIGNMENT
    bounds = [skeleton + blocks * number // count * ALIGNMENT for number in range(count + 1)]
    bounds[0] = 0
    ranges = pairwise(bounds)
    parts = [range(*next(ranges)) if holds else range(0) for holds in holders]
    return Plan(tuple(parts), tuple(rank for rank, holds in enumerate(holders) if not holds), skeleton)


def broadcast_state(tree: Any, progress: int, holds: bool) -> Any:
    """Bring rank 0's tree to every worker that does not hold the same one. A collective.

    Args:
        tree: nested dicts, lists and tuples; leaves are tensors or picklable. Only that of rank 0 and of
            workers that hold it counts.
        progress: commits that the tree is of.
        holds: whether this worker's tree is a state of the training under way, so that it is bitwise rank
            0's if it has the same progress.

    Returns:
        None where nothing was received; else rank 0's tree, with its tensors in host memory.

    Raises:
        StateError: On a worker where other bytes have arrived than were sent.
    """
    is_root = hvd.rank() == 0
    own = FlatTree(tree) if is_root or holds else None
    skeleton = own.skeleton() if own is not None and is_root else b""
    row = np.zeros(1, dtype=_ROW)
    if own is not None:
        row["holds"], row["progress"], row["layout"] = holds, progress, own.layout
        row["skeleton"], row["tensors"] = len(skeleton), own.size
    found = plan(gather(row, "edt.holders"))
    if not found.receivers:
        return None
    return _exchange(found, skeleton, own)


def _exchange(found: Plan, skeleton: bytes, own: FlatTree | None) -> Any:
    """The whole tree, on a receiver.

    Raises:
        StateError: Other bytes have arrived than were sent.
    """
    receives = hvd.rank() in found.receivers
    sums = np.zeros(1, dtype=_SUMS)
    incoming = _Incoming(found.skeleton) if receives else None
    if found.senders == (0,):
        _broadcast(found, skeleton, own, incoming, sums)
    else:
        _distribute(found, skeleton, own, incoming, sums)
    rows = gather(sums, "edt.state.sums")
    if incoming is None:
        return None
    if sums["received"] != rows["sent"].sum():
        raise StateError(
            f"the state of {found.size} bytes has arrived damaged; the network of this host is at fault"
        )
    return incoming.tree


class _Incoming:
    """What has arrived of a state. Its tensors are made when the skeleton is there."""

    def __init__(self, skeleton_size: int) -> None:
        self.tree: Any = None
        self.flat: FlatTree | None = None
        self._size = skeleton_size
        self._skeleton = bytearray()
        self._early: list[tuple[torch.Tensor, int]] = []

    def put(self, piece: torch.Tensor, start: int) -> None:
        """Take bytes of the state from `start` on; those of the skeleton come in order."""
        if self.flat is None:
            head = max(0, min(self._size - start, len(piece)))
            self._skeleton += piece[:head].numpy().tobytes()
            self._early.append((piece[head:], start + head))
            if len(self._skeleton) < self._size:
                return
            self.tree = flat.empty(bytes(self._skeleton))
            self.flat = FlatTree(self.tree)
            for early, at in self._early:
                self.flat.fill(early, at - self._size)
            self._early.clear()
            return
        self.flat.fill(piece, start - self._size)


def _broadcast(
    found: Plan, skeleton: bytes, own: FlatTree | None, incoming: _Incoming | None, sums: NDArray[np.void]
) -> None:
    """Send the state from rank 0 to all others, several pieces under way at a time."""
    is_root = hvd.rank() == 0
    for start in range(0, found.skeleton, MAX_CALL_BYTES):
        size = min(MAX_CALL_BYTES, found.skeleton - start)
        piece = torch.empty(size, dtype=torch.uint8, device="cpu")
        if is_root:
            piece.copy_(torch.frombuffer(bytearray(skeleton[start : start + size]), dtype=torch.uint8))
            sums["sent"] += _checksum(piece, start)
        hvd.broadcast_(piece, root_rank=0, name="edt.state.skeleton")
        if incoming is not None:
            sums["received"] += _checksum(piece, start)
            incoming.put(piece, start)
    mine = own if incoming is None else incoming.flat
    assert mine is not None
    under_way: deque[_Piece] = deque()
    for number, (part, memory) in enumerate(mine.pieces(CHUNK)):
        # Who only takes part must not be written to: it has the same state, and uses it.
        direct = memory if is_root or incoming is not None else None
        data = torch.empty(len(part), dtype=torch.uint8, device="cpu") if direct is None else direct
        if is_root and direct is None:
            mine.write(data, part.start)
        handle = hvd.broadcast_async_(data, root_rank=0, name=f"edt.state.{number % AHEAD}")
        if is_root:
            sums["sent"] += _checksum(data, found.skeleton + part.start)
        under_way.append(_Piece(handle, data, part, direct is None))
        if len(under_way) == AHEAD:
            _finish(under_way.popleft(), found, incoming, sums)
    while under_way:
        _finish(under_way.popleft(), found, incoming, sums)


class _Piece(NamedTuple):
    """A piece that is under way, and whether it is to be copied to its place."""

    handle: Any
    data: torch.Tensor
    part: range
    is_spare: bool


def _finish(piece: _Piece, found: Plan, incoming: _Incoming | None, sums: NDArray[np.void]) -> None:
    """Wait for a piece; a receiver checks it, and copies it to where it belongs, unless it is there."""
    hvd.synchronize(piece.handle)
    stages.heartbeat()
    if incoming is None:
        return
    assert incoming.flat is not None
    sums["received"] += _checksum(piece.data, found.skeleton + piece.part.start)
    if piece.is_spare:
        incoming.flat.fill(piece.data, piece.part.start)


def _distribute(
    found: Plan, skeleton: bytes, own: FlatTree | None, incoming: _Incoming | None, sums: NDArray[np.void]
) -> None:
    """Send the state from all that have it, each its part, to the others."""
    rank, size = hvd.rank(), hvd.size()
    for number in range(found.rounds):
        part = found.chunk(rank, number)
        piece = (
            torch.empty(0, dtype=torch.uint8, device="cpu")
            if own is None
            else _bytes(found, part, skeleton, own)
        )
        sums["sent"] += _checksum(piece, part.start)
        chunks = [found.chunk(sender, number) for sender in range(size)]
        received = _send(found, piece, chunks)
        if incoming is not None:
            lengths = [len(chunk) for chunk in chunks]
            parts = received.split(lengths)  # type: ignore[no-untyped-call]
            for chunk, arrived in zip(chunks, parts, strict=True):
                sums["received"] += _checksum(arrived, chunk.start)
                incoming.put(arrived, chunk.start)
        stages.heartbeat()


def _send(found: Plan, piece: torch.Tensor, chunks: Sequence[range]) -> torch.Tensor:
    """Give this worker's piece to all receivers; return what a receiver gets, in the order of the senders."""
    wants = torch.tensor(
        [other in found.receivers for other in range(len(chunks))], dtype=torch.int32, device="cpu"
    )
    copies = piece.repeat(len(found.receivers))
    received: torch.Tensor = hvd.alltoall(copies, wants * len(piece), name="edt.state")[0]
    return received


def _checksum(piece: torch.Tensor, start: int) -> np.int64:
    """A checksum of bytes of the state, by where they begin, modulo 2**64; as fast as memory."""
    whole = len(piece) // 8 * 8
    data = piece.numpy()
    words, rest = data[:whole].view(np.int64), data[whole:]  # where they lie need not be a multiple of eight
    with np.errstate(over="ignore"):
        total = words.sum(dtype=np.int64) + np.int64(int.from_bytes(rest.tobytes(), "little"))
        return np.int64(total * np.int64(start // ALIGNMENT * 2 + 1))


def _bytes(found: Plan, part: range, skeleton: bytes, own: FlatTree) -> torch.Tensor:
    piece = torch.empty(len(part), dtype=torch.uint8, device="cpu")
    head = max(0, min(found.skeleton, part.stop) - part.start)
    if head:
        piece[:head] = torch.frombuffer(
            bytearray(skeleton[part.start : part.start + head]), dtype=torch.uint8
        )
    own.write(piece[head:], max(0, part.start - found.skeleton))
    return piece
