"""Tests of the arithmetic that cuts an epoch into steps, micro-batches and shares."""

import math
from fractions import Fraction
from itertools import chain, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edt_hvd.data.batching import Batch, Batching, balanced_run, choose_micro_batch_size, mixed_seed

sizes = st.integers(1, 70)
worlds = st.integers(1, 12)


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    cut = Batching(draw(st.integers(1, 300)), draw(sizes))
    step = draw(st.integers(0, cut.steps - 1))
    return Batch.cut(step, cut.positions(step), draw(sizes))


@given(batches(), sizes)
def test_the_micro_batches_cover_the_batch_and_only_the_last_is_short(batch: Batch, micro: int) -> None:
    positions = list(chain(*batch.slots))
    assert positions == list(range(positions[0], positions[0] + batch.samples))
    cut = Batch.cut(batch.step, range(positions[0], positions[-1] + 1), micro)
    assert list(chain(*cut.slots)) == positions
    assert all(len(part) == micro for part in cut.slots[:-1])
    assert 0 < len(cut.slots[-1]) <= micro
    assert cut.micro_batches == len(cut.slots)


@given(batches())
def test_a_weight_is_the_share_of_the_samples_and_weights_sum_to_one(batch: Batch) -> None:
    parts = batch.share(0, 1)
    exact = [Fraction(len(part.positions), batch.samples) for part in parts]
    assert [part.weight for part in parts] == [float(share) for share in exact]
    assert sum(exact) == 1
    assert math.fsum(part.weight for part in parts) == pytest.approx(1, abs=1e-14)


@given(batches(), worlds)
def test_the_workers_shares_are_the_micro_batches_whatever_their_number(batch: Batch, size: int) -> None:
    shares = [batch.share(rank, size) for rank in range(size)]
    assert tuple(chain(*shares)) == batch.share(0, 1)
    assert max(map(len, shares)) <= batch.most(size)


def test_empty_slots_are_no_micro_batches() -> None:
    batch = Batch(0, (range(2), range(2, 2), range(4, 5), range(6, 6)))
    assert (batch.samples, batch.micro_batches, batch.most(3)) == (3, 2, 2)
    assert [[part.index for part in batch.share(rank, 2)] for rank in range(2)] == [[0], [2]]
    assert [part.weight for part in batch.share(0, 1)] == [2 / 3, 1 / 3]


@given(st.integers(0, 200), worlds)
def test_runs_are_contiguous_and_balanced_within_one(items: int, size: int) -> None:
    runs = [balanced_run(items, rank, size) for rank in range(size)]
    assert runs[0].start == 0
    assert runs[-1].stop == items
    assert all(left.stop == right.start for left, right in pairwise(runs))
    assert max(map(len, runs)) - min(map(len, runs)) <= 1


@pytest.mark.parametrize("rank", [-1, 3])
def test_a_rank_outside_the_world_is_refused(rank: int) -> None:
    with pytest.raises(
        ValueError, match=f"rank {rank} is outside the world of 3 workers; ranks go from 0 to 2"
    ):
        balanced_run(10, rank, 3)


@pytest.mark.parametrize("step", [-1, 4])
def test_a_step_outside_the_epoch_is_refused(step: int) -> None:
    with pytest.raises(IndexError, match=f"step {step} is outside the epoch's 4 steps"):
        Batching(100, 30).positions(step)


@example(3, 5)
@given(st.integers(1, 300), worlds)
def test_the_default_micro_batch_is_an_eighth_or_the_largest_that_leaves_nobody_idle(
    effective: int, workers: int
) -> None:
    size, warning = choose_micro_batch_size(effective, None, workers)
    eighth = -(-effective // 8)
    if -(-effective // eighth) >= workers:
        assert (size, warning) == (eighth, None)
    elif workers <= effective:
        assert f"the default micro_batch_size={eighth} cuts" in str(warning)
        assert -(-effective // size) >= workers > -(-effective // (size + 1))
    else:
        assert size == 1


@given(st.integers(1, 300), st.data(), worlds)
def test_a_requested_micro_batch_is_kept_unless_workers_would_idle(
    effective: int, data: st.DataObject, workers: int
) -> None:
    requested = data.draw(st.integers(1, effective))
    size, warning = choose_micro_batch_size(effective, requested, workers)
    if -(-effective // requested) >= workers:
        assert (size, warning) == (requested, None)
    else:
        assert warning is not None
        assert size == 1 or -(-effective // (size + 1)) < workers <= -(-effective // size)


@pytest.mark.parametrize(
    "effective, micro, error, message",
    [
        (0, None, ValueError, "effective_batch_size=0 is below 1"),
        (-4, None, ValueError, "effective_batch_size=-4 is below 1"),
        (8, 0, ValueError, "micro_batch_size=0 is below 1"),
        (8, 9, ValueError, "micro_batch_size=9 is larger than effective_batch_size=8; make it smaller"),
        (8.0, None, TypeError, r"effective_batch_size=8\.0 is a float; give a whole number"),
        (8, "4", TypeError, "micro_batch_size='4' is a str"),
        (True, None, TypeError, "effective_batch_size=True is a bool"),
    ],
)
def test_a_bad_size_is_named(effective: int, micro: int | None, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        choose_micro_batch_size(effective, micro, 1)


@given(st.integers(), st.integers())
def test_seeds_are_mixed_so_that_order_and_every_number_count(seed: int, epoch: int) -> None:
    assert 0 <= mixed_seed(seed, epoch) < 2**64
    assert mixed_seed(seed, epoch) != mixed_seed(seed, epoch + 1)
    assert mixed_seed(seed, epoch) != mixed_seed(seed + 1, epoch)
    assert seed == epoch or mixed_seed(seed, epoch) != mixed_seed(epoch, seed)


def test_the_seed_of_an_epoch_never_changes_between_releases() -> None:
    assert mixed_seed(0, 1) == 18443869377103087564
