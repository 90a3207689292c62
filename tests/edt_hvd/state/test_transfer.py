"""Who sends which part of the state to whom. That it arrives is shown by the resizes of real jobs."""

from itertools import pairwise
from typing import Any

import horovod.torch as hvd
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edt_hvd.errors import StateError
from edt_hvd.state import flat, transfer
from edt_hvd.state.flat import FlatTree
from edt_hvd.state.transfer import _ROW, CHUNK, MAX_CALL_BYTES, Plan, _exchange, plan


def table(*rows: tuple[int, int, int, int]) -> np.ndarray:
    """Rows of holds, progress, layout, tensors; rank 0 has a skeleton of 128 bytes."""
    full = [(*row[:3], 128 if rank == 0 else 0, row[3]) for rank, row in enumerate(rows)]
    return np.array(full, dtype=_ROW)


HOLDS, NEW = (1, 9, 77, 6400), (0, 0, 0, 0)


@pytest.mark.parametrize(
    "rows, senders, receivers",
    [
        ([HOLDS], (), ()),
        ([HOLDS, HOLDS, HOLDS], (), ()),
        ([HOLDS, (1, 8, 77, 6400)], (0,), (1,)),
        ([HOLDS, (1, 9, 78, 6400)], (0,), (1,)),
        ([HOLDS, (1, 9, 77, 64)], (0,), (1,)),
        ([HOLDS, (0, 9, 77, 6400)], (0,), (1,)),
        ([(0, 0, 77, 6400), NEW, NEW], (0,), (1, 2)),
    ],
    ids=["alone", "all equal", "progress", "layout", "size", "does not hold", "a first world"],
)
def test_who_has_not_the_state_of_rank_0_receives(
    rows: list[tuple[int, int, int, int]], senders: tuple[int, ...], receivers: tuple[int, ...]
) -> None:
    found = plan(table(*rows))
    assert found.receivers == receivers
    assert not receivers or found.senders == senders


def test_all_survivors_send_to_the_newcomers_alone() -> None:
    found = plan(table(HOLDS, NEW, HOLDS, NEW))
    assert found.receivers == (1, 3)
    assert found.senders == (0, 2)
    assert found.parts == (range(3328), range(0), range(3328, 6528), range(0))
    assert (found.size, found.skeleton) == (6528, 128)


@given(
    holds=st.lists(st.booleans(), min_size=1, max_size=9),
    tensors=st.integers(0, 5 * CHUNK).map(lambda n: n // 64 * 64),
)
def test_the_chunks_are_the_whole_state_once(holds: list[bool], tensors: int) -> None:
    rows = [(1, 9, 77, tensors)] + [(1, 9, 77, tensors) if h else NEW for h in holds]
    found: Plan = plan(table(*rows))
    chunks = [found.chunk(rank, number) for number in range(found.rounds) for rank in range(len(rows))]
    assert all(len(chunk) <= CHUNK for chunk in chunks)
    ends = sorted((chunk.start, chunk.stop) for chunk in chunks if chunk)
    assert ends[0][0] == 0
    assert ends[-1][1] == found.size == 128 + tensors
    assert all(left[1] == right[0] for left, right in pairwise(ends))


def test_a_holder_of_a_state_without_tensors_takes_part_in_the_broadcast(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = plan(table((1, 0, 0, 0), (1, 0, 0, 0), NEW))
    lengths = []
    monkeypatch.setattr(hvd, "rank", lambda: 1)
    monkeypatch.setattr(hvd, "size", lambda: 3)
    monkeypatch.setattr(transfer, "gather", lambda row, _: row)
    monkeypatch.setattr(hvd, "broadcast_", lambda state, **_: lengths.append(len(state)))
    assert _exchange(found, b"", FlatTree({"count": 1})) is None
    assert lengths == [found.size]


@pytest.mark.parametrize("workers", [2, 64, 1000])
def test_no_call_sends_more_than_32_bits_can_count(workers: int) -> None:
    size = 6 * 2**30
    found = plan(table((1, 9, 77, size), *[NEW] * (workers - 1)))
    assert len(found.chunk(0, 0)) * workers <= MAX_CALL_BYTES < 2**31
    assert found.rounds * found.chunk_size >= size


@pytest.mark.parametrize("own_piece", [64, 2**20])
def test_bytes_that_were_lost_on_the_way_are_noticed(monkeypatch: pytest.MonkeyPatch, own_piece: int) -> None:
    """As of a broadcast whose count did not fit: a part arrives, the rest stays as it was."""
    monkeypatch.setattr(flat, "OWN_PIECE", own_piece)
    monkeypatch.setattr(transfer, "CHUNK", 128)
    monkeypatch.setattr(transfer, "AHEAD", 2)
    sent = FlatTree({"weight": torch.arange(64.0), "bias": torch.ones(3)})
    skeleton = torch.frombuffer(bytearray(sent.skeleton()), dtype=torch.uint8)
    found = plan(np.array([(1, 0, 0, len(skeleton), sent.size), (0, 0, 0, 0, 0)], dtype=_ROW))
    pieces: list[torch.Tensor] = []
    for part, _ in sent.pieces(128):
        pieces.append(torch.zeros(len(part), dtype=torch.uint8))
        sent.write(pieces[-1], part.start)
    starts = [len(skeleton) + part.start for part, _ in sent.pieces(128)]
    total = np.array(list(map(transfer._checksum, [skeleton, *pieces], [0, *starts]))).sum()
    monkeypatch.setattr(hvd, "rank", lambda: 1)
    monkeypatch.setattr(hvd, "size", lambda: 2)

    def gather(row: np.ndarray, _name: str) -> np.ndarray:
        others = np.zeros(2, dtype=row.dtype)
        others["sent"] = total, row["sent"][0]
        return others

    def arrive(share: float) -> Any:
        left = iter(pieces)

        def broadcast(piece: torch.Tensor, **_: Any) -> None:
            count = int(share * len(piece))
            piece.zero_()[:count].copy_(next(left)[:count])

        return broadcast

    monkeypatch.setattr(transfer, "gather", gather)
    monkeypatch.setattr(hvd, "broadcast_", lambda piece, **_: piece.copy_(skeleton))
    monkeypatch.setattr(hvd, "synchronize", lambda _: None)
    monkeypatch.setattr(hvd, "broadcast_async_", arrive(1))
    received = _exchange(found, b"", None)
    assert torch.equal(received["weight"], torch.arange(64.0))
    assert torch.equal(received["bias"], torch.ones(3))
    monkeypatch.setattr(hvd, "broadcast_async_", arrive(0.5))
    with pytest.raises(StateError, match="arrived damaged"):
        _exchange(found, b"", None)
