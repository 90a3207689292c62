import random

import numpy as np
import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd.data.seeding import Purpose, seed_for

pytestmark = pytest.mark.usefixtures("alone")


def draw() -> tuple[float, float, float]:
    """A number of each global generator."""
    return torch.rand(()).item(), float(np.random.rand()), random.random()


def test_every_part_of_a_seed_counts() -> None:
    seeds = [
        (1, 2, 3),
        (2, 2, 3),
        (1, 3, 3),
        (1, 2, 4),
        (1, 2),
        (1, 2, 3, 0),
        (1, 23),
        (-1, 2, 3),
        (2**70, 2, 3),
    ]
    drawn = []
    for purpose in Purpose:
        for seed, epoch, *index in seeds:
            seed_for(purpose, seed, epoch, *index)
            drawn.append(draw())
    for numbers in zip(*drawn, strict=True):
        assert len(set(numbers)) == len(drawn)


def dropped(resume_at: int | None = None) -> list[torch.Tensor]:
    """What dropout leaves of every micro-batch, trained through or resumed, whatever was drawn before."""
    dropout = nn.Dropout(0.5)
    loader = edt_hvd.ElasticDataLoader([torch.ones(8)] * 12, 4, 2, seed=5)
    if resume_at is not None:
        loader.load_state_dict(loader.state_dict() | {"step": resume_at})
    found = []
    for step in loader:
        draw()
        found += [dropout(inputs) for inputs in step]
        draw()
    return found


def test_dropout_differs_by_micro_batch_and_not_by_what_was_drawn_before() -> None:
    torch.manual_seed(1)
    first = dropped()
    torch.manual_seed(2)
    assert all(map(torch.equal, dropped(), first))
    assert all(map(torch.equal, dropped(resume_at=1), first[2:]))
    assert len({str(each.tolist()) for each in first}) == 6
