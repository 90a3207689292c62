"""The rounding error of reduced gradients, as docs/explanation/exact.md bounds it, against exact sums.

The gradients go through a distributed optimizer: every sample is a gradient of its own micro-batch.
"""

import gc
import math
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

import edt_hvd
from edt_hvd.reduction.fixed_point.grid import IntegerBits, exponent_of
from examples import fewer

HEADROOM = {64: 3, 32: 2}
BITS = st.sampled_from((64, 32))


def reduced(steps: torch.Tensor, **options: object) -> torch.Tensor:
    """The mean over the micro-batches of every step, of shape ``(steps, n)``, in order of the steps."""
    edt_hvd.init()
    weight = nn.Parameter(torch.zeros(steps.shape[2]))
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD([weight], lr=0.0), **options)  # type: ignore[arg-type]
    loader = edt_hvd.ElasticDataLoader(list(steps.flatten(0, 1)), steps.shape[1], 1, shuffle=False)
    means = []
    for step in loader:
        for gradient in step:
            step.backward((weight * gradient).sum())
        means.append(weight.grad.clone())
        optimizer.step()
    del optimizer
    gc.collect(1)  # a living optimizer follows the steps of the next one, which takes time
    return torch.stack(means)


def units(steps: torch.Tensor, bits: IntegerBits) -> list[float]:
    """What an integer counts in, in every step but the first, by the documentation."""
    micro_batches = steps.shape[1]
    room = math.ceil(math.log2(micro_batches))
    limit = min(51, bits - 2 - room)
    found, history = [], -(2**15)
    for step in steps[:-1]:
        largest = exponent_of(step.abs().max().item() / micro_batches)
        history = history if largest is None else max(largest, history - 1)
        found.append(2.0 ** (history + HEADROOM[bits] - limit))
    return found


def gradients(kind: str, micro_batches: int) -> torch.Tensor:
    """Four steps of gradients of 1000 elements."""
    generator = torch.Generator().manual_seed(micro_batches)
    shape = (4, micro_batches, 1000)
    normal = torch.randn(shape, generator=generator)
    if kind == "same sign":
        return 1 + 0.1 * normal
    if kind == "heavy-tailed":  # Student's t with two degrees of freedom
        return normal / torch.randn((2, *shape), generator=generator).square().mean(0).sqrt()
    if kind == "of very different sizes":
        return normal * torch.randn(1000, generator=generator).mul(3).exp()
    return normal


def exact_mean(step: torch.Tensor) -> torch.Tensor:
    """Rounded once, to float64. The number of micro-batches is a power of two."""
    sums = [math.fsum(column) for column in step.T.tolist()]
    return torch.tensor(sums, dtype=torch.float64) / len(step)


@fewer(1 / 10)
@given(
    bits=BITS,
    micro_batches=st.integers(1, 9),
    values=st.lists(st.floats(-(2.0**60), 2.0**60, width=32), min_size=54, max_size=54),
)
def test_no_element_is_farther_from_the_exact_mean_than_the_bound(
    bits: IntegerBits, micro_batches: int, values: list[float]
) -> None:
    steps = torch.tensor(values[: 54 // micro_batches // 3 * 3 * micro_batches]).view(3, micro_batches, -1)
    means = reduced(steps, integer_bits=bits)
    weight = Fraction(1 / micro_batches)
    for step, mean, unit in zip(steps[1:], means[1:], units(steps, bits), strict=True):
        grid_error = Fraction(unit) * micro_batches * 5 / 8
        for column, value in zip(step.T.tolist(), mean.tolist(), strict=True):
            exact = sum(map(Fraction, column), Fraction()) * weight
            last_rounding = (abs(exact) + grid_error) * Fraction(1.0001) / 2**24 + Fraction(1, 2**149)
            beyond_the_limit = sum(abs(Fraction(g)) for g in column) * weight / 2**50  # float64 on the way
            assert abs(Fraction(value) - exact) <= grid_error + last_rounding + beyond_the_limit


KINDS = [("normal", 64), ("same sign", 8), ("heavy-tailed", 8), ("of very different sizes", 64)]


@pytest.mark.parametrize("kind, micro_batches", KINDS)
def test_64_bits_are_never_farther_off_than_float32_summation(kind: str, micro_batches: int) -> None:
    """In the RMS and the maximum over a tensor; and in each element, but for twice the grid's bound."""
    steps = gradients(kind, micro_batches)
    exact = torch.stack([exact_mean(step) for step in steps])
    error = (reduced(steps) - exact).abs()
    float32_error = (reduced(steps, reduction="ring") - exact).abs()
    assert (error.square().mean(1) <= float32_error.square().mean(1)).all()
    assert (error.amax(1) <= float32_error.amax(1)).all()
    allowance = torch.tensor(units(steps, 64)).double().mul(micro_batches * 5 / 4).unsqueeze(1)
    assert (error[1:] <= float32_error[1:] + allowance).all()


@pytest.mark.parametrize("kind, micro_batches", [KINDS[0], *KINDS[2:]])
@pytest.mark.parametrize("bits", [64, 32])
def test_roundings_to_the_grid_add_up_like_independent_ones(
    bits: IntegerBits, kind: str, micro_batches: int
) -> None:
    """The documented typical error: the square root of a twelfth of the number of addends, in units."""
    steps = gradients(kind, micro_batches)
    means = reduced(steps, integer_bits=bits)
    for step, mean, unit in zip(steps[1:], means[1:], units(steps, bits), strict=True):
        exact = exact_mean(step)
        rms = (mean - exact).square().mean().sqrt().item()
        last_rounding = 2.0**-24 / math.sqrt(3) * exact.square().mean().sqrt().item()
        assert rms <= 1.1 * math.hypot(unit * math.sqrt(micro_batches / 12), last_rounding)
