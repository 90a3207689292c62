"""Samplers: the order of an epoch's samples, and what of it must be the same everywhere."""

import random
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    RandomSampler,
    Sampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from torch.utils.data.distributed import DistributedSampler

from edt_hvd.data.loader import ElasticDataLoader
from examples import fewer
from places import Numbers, Place, batches_of, simulated


def sampled(sampler: Any, length: int = 20, effective: int = 4, **options: Any) -> ElasticDataLoader:
    return ElasticDataLoader(Numbers(length), effective, 1, sampler=sampler, collate_fn=list, **options)


class Drawn(Sampler[int]):
    """Draws an order from one of the global generators."""

    def __init__(self, length: int, source: str) -> None:
        self.length = length
        self.source = source

    def __len__(self) -> int:
        return self.length

    def __iter__(self) -> Iterator[int]:
        if self.source == "torch":
            return iter(torch.randperm(self.length).tolist())
        if self.source == "numpy":
            return iter(np.random.permutation(self.length).tolist())
        return iter(random.sample(range(self.length), self.length))


SAMPLERS = {
    "none": lambda: None,
    "random": lambda: RandomSampler(Numbers(20)),
    "own generator": lambda: RandomSampler(Numbers(20), generator=torch.Generator()),
    "weighted": lambda: WeightedRandomSampler([1.0] * 10 + [5.0] * 10, 20),
    "subset": lambda: SubsetRandomSampler(range(0, 40, 2)),
    "torch": lambda: Drawn(20, "torch"),
    "numpy": lambda: Drawn(20, "numpy"),
    "random module": lambda: Drawn(20, "random"),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_a_samplers_order_follows_from_seed_and_epoch(place: Place, name: str) -> None:
    def epochs(seed: int) -> list[list[int]]:
        loader = sampled(SAMPLERS[name](), 40, seed=seed)
        torch.rand(seed + 1)  # what was drawn before does not count
        return [list(chain(*batches_of(loader))) for _ in range(3)]

    first = epochs(0)
    assert epochs(0) == first
    assert len(set(map(tuple, first))) == 3
    assert epochs(1) != first


class Growing(Sampler[int]):
    """Gives more in every epoch."""

    def __init__(self) -> None:
        self.epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        return iter(range(4 * (self.epoch + 1)))


def test_epochs_may_differ_in_length(place: Place) -> None:
    loader = sampled(Growing())
    assert [len(batches_of(loader)) for _ in range(3)] == [1, 2, 3]
    assert loader.total_steps_done == 6
    with pytest.raises(TypeError, match="Growing has no length, so the steps of an epoch are not known"):
        len(loader)


class Remembering(Sampler[int]):
    """Goes on where it was, by its state."""

    def __init__(self) -> None:
        self.offset = 0

    def __len__(self) -> int:
        return 8

    def __iter__(self) -> Iterator[int]:
        start, self.offset = self.offset, self.offset + 8
        return iter(range(start, start + 8))

    def state_dict(self) -> dict[str, Any]:
        return {"offset": self.offset}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.offset = state["offset"]


def test_a_sampler_with_a_state_begins_the_epoch_from_it(place: Place) -> None:
    loader = sampled(Remembering(), 100)
    batches_of(loader)
    loop = iter(loader)
    assert list(chain(*next(loop))) == [8, 9, 10, 11]
    other = sampled(Remembering(), 100)
    other.load_state_dict(loader.state_dict())
    assert batches_of(other) == [[12, 13, 14, 15]]
    assert batches_of(other) == [[16, 17, 18, 19], [20, 21, 22, 23]]


# Batch samplers.


@pytest.mark.filterwarnings("ignore:a step of .* samples has:UserWarning")
@fewer(1 / 4)
@given(
    st.lists(st.lists(st.integers(0, 50), min_size=1, max_size=9), max_size=8),
    st.integers(1, 5),
    st.none() | st.integers(1, 9),
)
def test_each_batch_is_a_step_cut_alike_for_any_number_of_workers(
    batches: list[list[int]], size: int, micro: int | None
) -> None:
    def steps() -> list[list[list[int]]]:
        loader = ElasticDataLoader(Numbers(51), None, micro, batch_sampler=batches, collate_fn=list)
        assert len(loader) == len(batches)
        return [list(step) for step in loader]

    with simulated(Place(max_size=size)) as place:
        alone = steps()
        place.size, shares = size, []
        for place.rank in range(size):
            shares.append(steps())
    assert [list(chain(*step)) for step in alone] == batches
    assert [list(chain(*parts)) for parts in zip(*shares, strict=True)] == alone


def test_an_empty_batch_is_refused(place: Place) -> None:
    loader = ElasticDataLoader(Numbers(4), batch_sampler=[[1, 2], []])
    with pytest.raises(ValueError, match="batch 1 of list is empty"):
        list(loader)


def test_the_size_of_a_micro_batch_is_not_one_number_with_a_batch_sampler(place: Place) -> None:
    loader = ElasticDataLoader(Numbers(4), batch_sampler=[[1, 2]])
    assert loader.effective_batch_size is None
    with pytest.raises(TypeError, match="the size of a micro-batch differs by step"):
        _ = loader.micro_batch_size


# The same everywhere.


def test_a_step_refuses_another_order_on_another_worker(place: Place) -> None:
    step = next(iter(sampled(list(range(20)))))
    with pytest.raises(RuntimeError, match="do not use the same samples in epoch 0: rank 1, 3 has others"):
        step._check_order([5, 6, 5, 7])


# What is refused.


DIVIDING = DistributedSampler(Numbers(4), num_replicas=2, rank=0)


@pytest.mark.parametrize("sampler", [DIVIDING, BatchSampler(DIVIDING, 2, drop_last=False)])
def test_a_sampler_that_divides_samples_among_ranks_is_refused(sampler: Any) -> None:
    with pytest.raises(TypeError, match=r"a DistributedSampler divides the samples.*set_epoch\(\) with it"):
        ElasticDataLoader(Numbers(4), 2, sampler=sampler)


NO_SIZE = {"effective_batch_size": None}


@pytest.mark.parametrize(
    "options, message",
    [
        ({"dataset": type("Endless", (Dataset,), {})()}, "Endless has no length; give a map-style dataset"),
        ({"sampler": iter([1, 2])}, "the sampler is a list_iterator, an iterator, which is used up"),
        ({"sampler": [1], "shuffle": True}, "shuffle=True and sampler exclude each other"),
        ({"sampler": [1], "batch_sampler": [[1]]}, "sampler and batch_sampler exclude each other"),
        ({"batch_sampler": [[1]]}, "leave effective_batch_size and drop_last out"),
        (NO_SIZE, "give effective_batch_size"),
        ({"effective_batch_size": None, "batch_sampler": [[1]], "drop_last": True}, "leave effective"),
    ],
)
def test_arguments_that_mean_nothing_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ElasticDataLoader(**{"dataset": Numbers(4), "effective_batch_size": 2} | options)


def test_setting_the_epoch_is_refused(place: Place) -> None:
    loader = sampled([1, 2, 3, 4])
    batches_of(loader)
    with pytest.raises(RuntimeError, match=r"set_epoch\(5\).*\(this is epoch 1\).*leave the call out"):
        loader.set_epoch(5)


# torch's own loader.


def first_epochs(loader: ElasticDataLoader) -> list[list[list[int]]]:
    return [batches_of(loader) for _ in range(2)]


@pytest.mark.parametrize(
    "torch_options, options",
    [
        ({"batch_size": 4}, {"effective_batch_size": 4, "shuffle": False}),
        ({"batch_size": 4, "shuffle": True}, {"effective_batch_size": 4}),
        (
            {"batch_size": 3, "sampler": RandomSampler(Numbers(10), num_samples=5)},
            {"effective_batch_size": 3, "sampler": RandomSampler(Numbers(10), num_samples=5)},
        ),
        ({"batch_sampler": [[1, 2], [5]]}, {"batch_sampler": [[1, 2], [5]]}),
    ],
)
def test_what_torchs_loader_says_is_taken_over(
    place: Place, torch_options: dict[str, Any], options: dict[str, Any]
) -> None:
    taken = ElasticDataLoader(DataLoader(Numbers(10), **torch_options, collate_fn=list), micro_batch_size=1)
    plain = ElasticDataLoader(Numbers(10), **options, micro_batch_size=1, collate_fn=list)
    assert first_epochs(taken) == first_epochs(plain)


@pytest.mark.parametrize(
    "torch_options, options, message",
    [
        ({"batch_size": None}, {}, "batch_size=None, so it makes no batches"),
        ({"generator": torch.Generator()}, {}, "pass ElasticDataLoader a seed instead"),
        ({"batch_size": 2}, {"num_workers": 2, "shuffle": True}, "shuffle, num_workers given besides"),
        ({"batch_sampler": [[1]]}, {"effective_batch_size": 2}, "leave effective_batch_size out"),
    ],
)
def test_what_of_torchs_loader_means_nothing_is_named(
    torch_options: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        ElasticDataLoader(DataLoader(Numbers(10), **torch_options), **options)
