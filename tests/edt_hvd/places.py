"""A loader's surroundings in one process: a stand-in for the world, and for what reduces."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pytest
import torch
from torch.utils.data import Dataset

from edt_hvd.data.loader import ElasticDataLoader
from edt_hvd.reduction import participants
from edt_hvd.world import world


class Numbers(Dataset[int]):
    """Sample i is the number i."""

    def __init__(self, length: int) -> None:
        self.length = length

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> int:
        return index


@dataclass
class Place:
    """Stands in for the world and the reducers: the place of whichever worker has its turn."""

    rank: int = 0
    size: int = 1
    max_size: int = 1
    membership: int = 0
    reducers: Sequence[Any] = ()


@contextmanager
def simulated(place: Place) -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world, "rank", lambda: place.rank)
        patch.setattr(world, "size", lambda: place.size)
        patch.setattr(world, "max_size", lambda: place.max_size)
        patch.setattr(world, "membership", lambda: place.membership)
        patch.setattr(participants, "active", lambda: tuple(place.reducers))
        yield place


def parameter_loss(value: float = 1.0) -> torch.Tensor:
    return torch.tensor(value, requires_grad=True)


def batches_of(loader: ElasticDataLoader) -> list[list[int]]:
    """The samples of every step left in the epoch, as one worker sees them."""
    return [list(chain(*step)) for step in loader]


def numbers_loader(
    length: int = 10, effective: int = 4, micro: int | None = 1, **options: Any
) -> ElasticDataLoader:
    return ElasticDataLoader(Numbers(length), effective, micro, **{"collate_fn": list} | options)
