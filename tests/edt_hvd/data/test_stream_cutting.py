"""Tests of how a stream is cut."""

from itertools import chain, pairwise

from hypothesis import given
from hypothesis import strategies as st

from edt_hvd.data.stream_cutting import StreamCutting


@st.composite
def cuttings(draw: st.DrawFn) -> StreamCutting:
    effective = draw(st.integers(1, 60))
    return StreamCutting(effective, draw(st.integers(1, effective)), draw(st.integers(1, 20)))


@given(cuttings())
def test_the_parts_share_the_slots_out_evenly_and_each_has_one(cutting: StreamCutting) -> None:
    slots = [cutting.slots_of(part) for part in range(cutting.parts)]
    assert list(chain(*slots)) == list(range(cutting.slots))
    lengths = list(map(len, slots))
    assert min(lengths) >= 1
    assert max(lengths) - min(lengths) <= 1
    assert sum(map(cutting.width, range(cutting.parts))) == cutting.effective_batch_size


@given(cuttings(), st.integers(1, 12))
def test_a_worker_reads_the_parts_of_its_slots_and_no_others(cutting: StreamCutting, size: int) -> None:
    for rank in range(size):
        slots = cutting.slots_of_worker(rank, size)
        read = [part for part in range(cutting.parts) if set(cutting.slots_of(part)) & set(slots)]
        assert list(cutting.parts_of_worker(rank, size)) == read


@given(cuttings(), st.integers(0, 9), st.data())
def test_a_batch_has_what_the_parts_gave(cutting: StreamCutting, step: int, data: st.DataObject) -> None:
    counts = [data.draw(st.integers(0, cutting.width(part))) for part in range(cutting.parts)]
    batch = cutting.batch(step, counts)
    assert batch.samples == sum(counts)
    for part, count in enumerate(counts):
        slots = [batch.slots[slot] for slot in cutting.slots_of(part)]
        assert sum(map(len, slots)) == count
        full = [
            len(positions) == cutting.capacity(slot)
            for positions, slot in zip(slots, cutting.slots_of(part), strict=True)
        ]
        assert full == sorted(full, reverse=True)
    starts = [positions.start for positions in batch.slots]
    assert starts[0] == step * cutting.effective_batch_size
    assert all(right - left == cutting.micro_batch_size for left, right in pairwise(starts))
