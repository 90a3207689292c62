import random

import numpy as np
import pytest
import torch

from edt_hvd.data.randomness.seeding import Purpose, seed_for

pytestmark = pytest.mark.usefixtures("alone")


def draw() -> tuple[float, float, float]:
    """A number of each global generator."""
    return torch.rand(()).item(), float(np.random.rand()), random.random()


def test_every_part_of_a_seed_counts() -> None:
    seeds = [
        *((1, 2, 3), (2, 2, 3), (1, 3, 3), (1, 2, 4), (1, 2), (1, 2, 3, 0)),
        *((1, 23), (-1, 2, 3), (2**70, 2, 3)),
    ]
    drawn = []
    for purpose in Purpose:
        for seed, epoch, *index in seeds:
            seed_for(purpose, seed, epoch, *index)
            drawn.append(draw())
    for numbers in zip(*drawn, strict=True):
        assert len(set(numbers)) == len(drawn)
