"""Who sends which part of the state to whom. That it arrives is shown by the resizes of real jobs."""

from itertools import pairwise

import horovod.torch as hvd
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_hvd.state.flat import FlatTree
from edt_hvd.state.transfer import _ROW, CHUNK, Plan, _exchange, plan


def table(*rows: tuple[int, int, int, int]) -> np.ndarray:
    """Rows of holds, progress, layout, tensors; rank 0 has a skeleton of 128 bytes."""
    full = [(*row[:3], 128 if rank == 0 else 0, row[3]) for rank, row in enumerate(rows)]
    return np.array(full, dtype=_ROW)


HOLDS, NEW = (1, 9, 77, 6400), (0, 0, 0, 0)


def test_alone_or_all_equal_nobody_receives() -> None:
    assert plan(table(HOLDS)).receivers == ()
    assert plan(table(HOLDS, HOLDS, HOLDS)).receivers == ()


def test_all_survivors_send_to_the_newcomers_alone() -> None:
    found = plan(table(HOLDS, NEW, HOLDS, NEW))
    assert found.receivers == (1, 3)
    assert found.senders == (0, 2)
    assert found.parts == (range(3328), range(0), range(3328, 6528), range(0))
    assert (found.size, found.skeleton) == (6528, 128)


@pytest.mark.parametrize("other", [(1, 8, 77, 6400), (1, 9, 78, 6400), (1, 9, 77, 64), (0, 9, 77, 6400)])
def test_who_has_another_state_receives(other: tuple[int, int, int, int]) -> None:
    found = plan(table(HOLDS, other))
    assert (found.senders, found.receivers) == ((0,), (1,))


def test_in_a_first_world_rank_0_has_the_state() -> None:
    found = plan(table((0, 0, 77, 6400), NEW, NEW))
    assert (found.senders, found.receivers) == ((0,), (1, 2))


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
    monkeypatch.setattr(hvd, "broadcast_", lambda state, **_: lengths.append(len(state)))
    assert _exchange(found, b"", FlatTree({"count": 1})) is None
    assert lengths == [found.size]
