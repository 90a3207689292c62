"""What imports do to the global random number generators."""

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from edt_hvd.warm import random_numbers
from edt_hvd.warm.random_numbers import Watch
from edt_hvd.wmla.pickling.random_states import RandomStates


@pytest.fixture(autouse=True)
def states() -> Iterator[None]:
    before = RandomStates.now()
    random_numbers.reseed()  # a seed that is there already cannot be seen to be set
    yield
    before.restore()


def draw() -> None:
    for _ in range(20):
        random.gauss()
        np.random.standard_normal()
        torch.randn(20)


@pytest.mark.parametrize(
    "name, seed", [("random", random.seed), ("numpy", np.random.seed), ("torch", torch.manual_seed)]
)
def test_a_seed_is_seen(name: str, seed: Callable[[int], object]) -> None:
    watch = Watch()
    seed(1)
    assert watch.seeded == [name]
    draw()
    assert watch.seeded == [name]


def test_new_seeds_give_other_numbers_each_time() -> None:
    found = set()
    for _ in range(2):
        torch.manual_seed(1)
        np.random.seed(1)
        random.seed(1)
        random_numbers.reseed()
        found |= {random.random(), np.random.random(), torch.rand(1, dtype=torch.float64).item()}
    assert len(found) == 6
