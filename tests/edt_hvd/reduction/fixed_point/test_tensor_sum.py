"""Sums in fixed point; that they do not depend on their division is in `test_exact`."""

import math
from collections.abc import Sequence
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edt_hvd.reduction.fixed_point import tensor_sum as fixed_point_sum
from edt_hvd.reduction.fixed_point.grid import Grid, IntegerBits, place
from edt_hvd.reduction.fixed_point.tensor_sum import FixedPointSum
from examples import fewer

INTEGERS: dict[IntegerBits, torch.dtype] = {32: torch.int32, 64: torch.int64}
Addend = tuple[torch.Tensor, float]


def sum_of(addends: Sequence[Addend], at: Grid, bits: IntegerBits, length: int) -> FixedPointSum:
    """What one worker has after its micro-batches."""
    found = FixedPointSum(torch.zeros(length, dtype=INTEGERS[bits]))
    found.begin(at)
    for values, weight in addends:
        assert found.add(values, weight) is None
    return found


def read(found: FixedPointSum, dtype: torch.dtype) -> torch.Tensor:
    out = torch.full((found.total.numel(),), 7.0, dtype=dtype)
    found.read(out)
    return out


@st.composite
def sums(draw: st.DrawFn) -> tuple[list[Addend], Grid, IntegerBits]:
    """Micro-batches' gradients with weights, and a grid."""
    dtype = draw(st.sampled_from([torch.float32, torch.float16, torch.bfloat16, torch.float64]))
    bits: IntegerBits = draw(st.sampled_from([32, 64]))
    count, length = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    sizes = st.sampled_from([-140, -60, -20, -3, 0, 3, 20, 60, 120, 126])
    ordinary = st.builds(math.ldexp, st.floats(-1, 1), sizes)
    value = st.one_of(ordinary, st.sampled_from([0.0, -0.0, math.inf, math.nan, 1e-45]))
    rows = draw(st.lists(st.lists(value, min_size=length, max_size=length), min_size=count, max_size=count))
    weights = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    addends = [
        (torch.tensor(row, dtype=torch.float64).to(dtype), weight / sum(weights))
        for row, weight in zip(rows, weights, strict=True)
    ]
    return addends, place(draw(st.one_of(st.none(), st.integers(-160, 130))), bits, count), bits


@fewer(1 / 2)
@given(sums())
def test_the_sum_is_within_half_a_unit_an_addend_of_the_exact_one(
    case: tuple[list[Addend], Grid, IntegerBits],
) -> None:
    addends, at, bits = case
    length = addends[0][0].numel()
    found = sum_of(addends, at, bits, length)
    out = read(found, torch.float64)
    for index in range(length):
        column = [(float(values[index]), weight) for values, weight in addends]
        if not all(math.isfinite(value) for value, _ in column):
            continue
        exact = sum((Fraction(value) * Fraction(weight) for value, weight in column), Fraction())
        sizes = sum((abs(Fraction(value) * Fraction(weight)) for value, weight in column), Fraction())
        # Half a unit for each rounding to the grid; 2**-53 for each product, and twice for reading the sum.
        bound = Fraction(len(column), 2) / Fraction(2) ** at.scale + 3 * sizes / 2**53
        assert abs(Fraction(float(out[index])) - exact) <= bound


@fewer(1 / 2)
@given(sums(), st.integers(1, 3), st.integers(0, 3))
def test_pieces_read_into_the_memory_of_the_integers_have_the_same_bits(
    case: tuple[list[Addend], Grid, IntegerBits], piece: int, before: int
) -> None:
    addends, at, bits = case
    length, dtype = addends[0][0].numel(), addends[0][0].dtype
    whole = read(sum_of(addends, at, bits, length), dtype)
    memory = torch.zeros(before + length, dtype=INTEGERS[bits])
    fits = dtype.itemsize <= memory.itemsize
    out = (memory.view(dtype)[before : before + length]) if fits else torch.empty(length, dtype=dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fixed_point_sum, "PIECE", piece)
        found = FixedPointSum(memory[before:])
        found.begin(at)
        for values, weight in addends:
            found.add(values, weight)
        found.read(out)
    integers = {2: torch.int16, 4: torch.int32, 8: torch.int64}[dtype.itemsize]
    assert out.view(integers).tolist() == whole.view(integers).tolist()


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("growth", [1, 3, 30, 100, 200])
def test_addends_far_beyond_the_limit_are_summed_exactly(bits: IntegerBits, growth: int) -> None:
    at = place(-100, bits, 4)
    values = torch.tensor([1.0, -1 / 3, 1.5, math.pi], dtype=torch.float32) * 2.0 ** (growth - 100)
    small = torch.tensor([0.0, 2.0**-101, -(2.0**-110), 2.0**-102])
    out = read(sum_of([(values, 1.0), (small, 1.0), (values, 1.0)], at, bits, 4), torch.float64)
    exact = [2 * Fraction(v) + Fraction(s) for v, s in zip(values.tolist(), small.tolist(), strict=True)]
    assert out.tolist() == list(map(float, exact))


@pytest.mark.parametrize("bits", [32, 64])
def test_what_cancels_beyond_the_limit_leaves_what_is_within_it(bits: IntegerBits) -> None:
    at = place(0, bits, 4)
    rows = [torch.tensor([2.0**100]), torch.tensor([0.75]), torch.tensor([-(2.0**100)])]
    assert read(sum_of([(row, 1.0) for row in rows], at, bits, 1), torch.float32).tolist() == [0.75]


def test_infinity_only_when_the_sum_is_beyond_the_type() -> None:
    rows = [(torch.tensor([3e38, 3e38]), 1.0), (torch.tensor([3e38, -3e38]), 1.0)]
    assert read(sum_of(rows, place(None, 64, 2), 64, 2), torch.float32).tolist() == [math.inf, 0.0]
