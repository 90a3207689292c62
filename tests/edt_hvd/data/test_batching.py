"""Tests of the arithmetic that cuts an epoch into steps, micro-batches and shares."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edt_hvd.data.batching import Batch, Batching, balanced_run, choose_micro_batch_size, mixed_seed

worlds = st.integers(1, 12)


def test_empty_slots_are_no_micro_batches() -> None:
    batch = Batch(0, (range(2), range(2, 2), range(4, 5), range(6, 6)))
    assert (batch.samples, batch.micro_batches, batch.max_per_worker(3)) == (3, 2, 2)
    assert [[part.index for part in batch.share(rank, 2)] for rank in range(2)] == [[0], [2]]
    assert [part.weight for part in batch.share(0, 1)] == [2 / 3, 1 / 3]


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


@example(8, 8, 2)
@given(st.integers(1, 300), st.integers(1, 300), worlds)
def test_a_requested_micro_batch_is_kept_unless_workers_would_idle(
    effective: int, requested: int, workers: int
) -> None:
    requested = min(requested, effective)
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


def test_the_seed_of_an_epoch_never_changes_between_releases() -> None:
    assert mixed_seed(0, 1) == 18443869377103087564
