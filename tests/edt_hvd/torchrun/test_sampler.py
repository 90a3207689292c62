"""ElasticBatchSampler: an epoch's samples once each, whatever numbers of ranks it is resumed with."""

from collections import Counter
from itertools import chain, islice

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from edt_hvd.errors import StateError
from edt_hvd.torchrun import ElasticBatchSampler

RANKS = st.integers(1, 9)
BATCHES = st.integers(1, 7)


def samplers(length: int, batch: int, ranks: int, **options: object) -> list[ElasticBatchSampler]:
    return [
        ElasticBatchSampler(range(length), batch, num_replicas=ranks, rank=rank, **options)
        for rank in range(ranks)
    ]


def steps_of(world: list[ElasticBatchSampler]) -> list[list[list[int]]]:
    """What is left of the epoch: for each step the batch of each rank."""
    rows = [list(sampler) for sampler in world]
    assert [len(sampler) for sampler in world] == [len(rows[0])] * len(world)
    return [list(step) for step in zip(*rows, strict=True)]


@given(st.integers(1, 200), st.lists(st.tuples(RANKS, BATCHES, st.integers(0, 12)), min_size=1, max_size=5))
def test_every_sample_is_used_once_in_worlds_of_any_size(length, worlds):
    used: Counter[int] = Counter()
    state = None
    for number, (ranks, batch, steps) in enumerate(worlds):
        world = samplers(length, batch, ranks, seed=3)
        for sampler in world:
            if state is not None:
                sampler.load_state_dict(state)
        last = number == len(worlds) - 1
        left = length - world[0].position
        plan = steps_of(world)
        for step in plan if last else plan[:steps]:
            assert all(step)  # DDP would wait for a rank without a batch
            indices = [index for batch in step for index in batch]
            used.update(indices if left >= ranks else set(indices))
            for sampler in world:
                sampler.advance()
        state = world[-1].state_dict()
        assert state == world[0].state_dict()
        if state["epoch"] == 1:
            break
    assert used == Counter(range(length))
    assert (state["epoch"], state["position"]) == (1, 0)


@given(st.integers(1, 200), RANKS, BATCHES)
def test_batches_differ_by_a_sample_at_most_within_a_step(length, ranks, batch):
    for step in steps_of(samplers(length, batch, ranks)):
        sizes = [len(indices) for indices in step]
        assert max(sizes) - min(sizes) <= 1
        assert max(sizes) <= batch + 1


def test_full_steps_are_those_of_distributed_sampler():
    for rank in range(3):
        theirs = DistributedSampler(range(100), 3, rank, seed=5)
        theirs.set_epoch(2)
        ours = ElasticBatchSampler(range(100), 4, seed=5, num_replicas=3, rank=rank)
        ours.set_epoch(2)
        assert list(chain(*islice(ours, 8))) == list(theirs)[:32]


def test_samples_left_over_join_the_last_step_or_are_dropped():
    assert steps_of(samplers(9, 2, 4, shuffle=False)) == [[[0, 4, 8], [1, 5], [2, 6], [3, 7]]]
    assert steps_of(samplers(11, 2, 2, shuffle=False, drop_last=True)) == [
        [[0, 2], [1, 3]],
        [[4, 6], [5, 7]],
    ]


def test_with_fewer_samples_left_than_ranks_some_are_used_twice():
    world = samplers(5, 1, 3, shuffle=False)
    for sampler in world:
        sampler.load_state_dict(sampler.state_dict() | {"position": 3})
    assert steps_of(world) == [[[3], [4], [3]]]


def test_a_loader_that_reads_ahead_does_not_move_the_position():
    sampler = ElasticBatchSampler(range(12), 2)
    loader = DataLoader(TensorDataset(torch.arange(12)), batch_sampler=sampler)
    batches = iter(loader)
    first = [next(batches)[0].tolist() for _ in range(3)]
    sampler.advance(2)
    resumed = ElasticBatchSampler(range(12), 3)
    resumed.load_state_dict(sampler.state_dict())
    assert resumed.position == 4
    assert next(iter(resumed))[:2] == first[2]


def test_set_epoch_goes_on_with_the_present_epoch_and_begins_another():
    sampler = ElasticBatchSampler(range(6), 2)
    sampler.advance()
    sampler.set_epoch(0)
    assert len(sampler) == 2
    sampler.set_epoch(1)
    assert len(sampler) == 3
    sampler.advance(3)
    assert (sampler.epoch, sampler.position) == (2, 0)


def test_refuses_what_would_mean_other_samples():
    state = ElasticBatchSampler(range(6), 2).state_dict()
    with pytest.raises(StateError, match=r"length=6, this sampler length=7"):
        ElasticBatchSampler(range(7), 2).load_state_dict(state)
    with pytest.raises(ValueError, match="batches=4: expected 0 to 3, as many as are left in epoch 0"):
        ElasticBatchSampler(range(6), 2).advance(4)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"dataset": []}, "the data set is empty"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"rank": 2, "num_replicas": 2}, "rank=2: expected 0 to 1"),
        ({"drop_last": True, "num_replicas": 2, "rank": 0}, "leaves nothing of 3 samples"),
    ],
)
def test_refuses_arguments_that_make_no_batch(arguments, message):
    with pytest.raises(ValueError, match=message):
        ElasticBatchSampler(**{"dataset": range(3), "batch_size": 2} | arguments)


def test_ranks_come_from_the_environment_of_torchrun(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert list(ElasticBatchSampler(range(4), 2, shuffle=False)) == [[1, 3]]
