"""Streams of numbers, and reading them alone or in a world whose workers are threads that take turns."""

import copy
import random
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

from torch.utils.data import IterableDataset

from crew import together
from edt_hvd.data.loader import ElasticDataLoader
from places import Place, simulated


class Plain(IterableDataset[int]):
    """Gives the numbers from 0; `reads` counts them."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.reads = 0

    def __iter__(self) -> Iterator[int]:
        for number in range(self.length):
            self.reads += 1
            yield number


class Augmented(Plain):
    """Draws a random number for each."""

    def __iter__(self) -> Iterator[Any]:
        return ((number, random.random()) for number in super().__iter__())


class CountingEpochs(Plain):
    """Counts its epochs itself, and can go on behind what it gave last."""

    def __init__(self, length: int) -> None:
        super().__init__(length)
        self.given = self.epoch = 0

    def __iter__(self) -> Iterator[int]:
        while self.given < self.length:
            self.given += 1
            self.reads += 1
            yield 1000 * self.epoch + self.given - 1
        self.given = 0
        self.epoch += 1

    def state_dict(self) -> dict[str, Any]:
        return {"given": self.given, "epoch": self.epoch}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.given, self.epoch = state["given"], state["epoch"]


class Stateful(CountingEpochs):
    """Is told its epochs, and can go on behind what it gave last."""

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class Sharded:
    """Gives the numbers of several lists; `opened` are the lists that were read, in all copies together."""

    def __init__(self, lists: list[list[int]], opened: list[int] | None = None, first: int = 0) -> None:
        self.lists = lists
        self.opened = [] if opened is None else opened
        self.first = first

    @property
    def num_shards(self) -> int:
        return len(self.lists)

    def shard(self, num_shards: int, index: int) -> "Sharded":
        start, stop = (number * len(self.lists) // num_shards for number in (index, index + 1))
        return type(self)(self.lists[start:stop], self.opened, self.first + start)

    def __iter__(self) -> Iterator[int]:
        for number, each in enumerate(self.lists, self.first):
            self.opened.append(number)
            yield from each


class StatefulSharded(Sharded):
    """Its iterators have a state."""

    def __iter__(self) -> "Iterator[int]":
        return _Numbers([number for each in self.lists for number in each])


class _Numbers:
    def __init__(self, numbers: list[int]) -> None:
        self.numbers = numbers
        self.given = 0

    def __iter__(self) -> "_Numbers":
        return self

    def __next__(self) -> int:
        if self.given == len(self.numbers):
            raise StopIteration
        self.given += 1
        return self.numbers[self.given - 1]

    def state_dict(self) -> dict[str, Any]:
        return {"given": self.given}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.given = state["given"]


Steps = list[list[list[Any]]]
"""Of each step, the micro-batches."""


def stream_loader(
    stream: Any, effective: int = 4, micro: int | None = 1, **options: Any
) -> ElasticDataLoader:
    return ElasticDataLoader(stream, effective, micro, **{"collate_fn": list} | options)


def read(loader: ElasticDataLoader, steps: int | None = None) -> Steps:
    """This worker's share of the next steps, to the end of the epoch at most."""
    return [list(step) for step in islice(loader, steps)]


def in_world(
    size: int,
    make: Callable[[], ElasticDataLoader],
    state: dict[str, Any] | None = None,
    steps: int | None = None,
    max_size: int = 4,
    membership: int = 0,
) -> tuple[Steps, dict[str, Any]]:
    """What the workers of a world read together from a state on, and the state afterwards."""

    def work(rank: int) -> tuple[Steps, dict[str, Any]]:
        loader = make()
        if state is not None:
            loader.load_state_dict(copy.deepcopy(state))
        return read(loader, steps), loader.state_dict()

    found = together(size, work, max_size=max_size, membership=membership)
    assert all(each[1] == found[0][1] for each in found)
    shares = [each[0] for each in found]
    return [list(chain(*step)) for step in zip(*shares, strict=True)], found[0][1]


def alone(stream: Any, effective: int = 4, micro: int | None = 1, **options: Any) -> Steps:
    with simulated(Place()):
        return read(stream_loader(stream, effective, micro, **options))
