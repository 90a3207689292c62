import itertools
from dataclasses import astuple

import pytest
import torch
from torch import nn

from edt_hvd.debug.operators import OperatorTrace

count = itertools.count()


@torch.library.custom_op("traced::restless", mutates_args=())
def restless(values: torch.Tensor) -> torch.Tensor:
    return values + next(count)


def trace(compute):
    """What is written down of `compute()`: operator, inputs, outputs, whether it is random."""
    lines = []
    with OperatorTrace(lambda line: lines.append(astuple(line)[:4])):
        compute()
    return lines


@pytest.mark.parametrize(
    "operator, compute",
    [
        ("aten::bernoulli_", lambda: nn.functional.dropout(torch.ones(100), 0.5)),
        ("aten::randn", lambda: torch.randn(3)),
        ("aten::normal_", lambda: torch.empty(3).normal_()),
    ],
)
def test_random_operators_are_marked_and_memory_that_nobody_wrote_does_not_count(operator, compute):
    dirty = torch.full((100,), torch.nan)
    a = trace(compute)
    del dirty
    b = trace(compute)
    (x, y) = next((x, y) for x, y in zip(a, b, strict=True) if x != y)
    assert (x[0], x[1], x[3]) == (operator, y[1], True)
