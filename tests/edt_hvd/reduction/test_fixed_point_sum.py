"""Sums in fixed point; several workers are as many sums in this process, whose integers are added by hand."""

import math
from collections.abc import Sequence
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from edt_hvd.reduction.fixed_point_sum import FixedPointSum
from edt_hvd.reduction.grid import Grid, IntegerBits, limit_for, place

INTEGERS: dict[IntegerBits, torch.dtype] = {32: torch.int32, 64: torch.int64}
DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]
Addend = tuple[torch.Tensor, float]


def sum_of(addends: Sequence[Addend], at: Grid, bits: IntegerBits, length: int) -> FixedPointSum:
    """What one worker has after its micro-batches."""
    found = FixedPointSum(torch.zeros(length, dtype=INTEGERS[bits]))
    found.begin(at)
    for values, weight in addends:
        assert found.add(values, weight) is None
    return found


def combined(parts: Sequence[FixedPointSum]) -> FixedPointSum:
    """What every worker has after the reduction."""
    exponent = max(part.exponent for part in parts)
    special = any(part.special is not None for part in parts)
    levels = range(1, parts[0].grid.levels(exponent) + 1)
    first = parts[0]
    tensors = [[p.total, *map(p.level, levels), *([p.specials()] if special else [])] for p in parts]
    for other in tensors[1:]:
        for mine, theirs in zip(tensors[0], other, strict=True):
            mine.add_(theirs)
    first.exponent = exponent
    return first


def bits_of(tensor: torch.Tensor) -> bytes:
    return (
        tensor.numpy().tobytes()
        if tensor.dtype != torch.bfloat16
        else tensor.view(torch.int16).numpy().tobytes()
    )


def read(found: FixedPointSum, dtype: torch.dtype) -> torch.Tensor:
    out = torch.full((found.total.numel(),), 7.0, dtype=dtype)
    found.read(out)
    return out


def rounded(value: Fraction, dtype: torch.dtype) -> float:
    """Nearest number of the type, by way of float64 and float32 as documented for narrow ones."""
    try:
        double = torch.tensor(float(value), dtype=torch.float64)
    except OverflowError:
        return math.copysign(math.inf, value)
    return float(double if dtype == torch.float64 else double.float().to(dtype))


@st.composite
def divisions(draw: st.DrawFn) -> tuple[list[Addend], list[list[Addend]], Grid, IntegerBits, torch.dtype]:
    """Micro-batches' gradients with weights, some order and division of them among workers, and a grid."""
    dtype = draw(st.sampled_from(DTYPES))
    bits: IntegerBits = draw(st.sampled_from([32, 64]))
    count, length = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    sizes = st.sampled_from([-140, -60, -20, -3, 0, 3, 20, 60, 120, 126])
    ordinary = st.builds(math.ldexp, st.floats(-1, 1), sizes)
    any_value = st.one_of(ordinary, st.sampled_from([0.0, -0.0, math.inf, -math.inf, math.nan, 1e-45]))
    value = draw(st.sampled_from([ordinary, any_value]))
    rows = draw(st.lists(st.lists(value, min_size=length, max_size=length), min_size=count, max_size=count))
    weights = draw(st.lists(st.integers(1, 5), min_size=count, max_size=count))
    addends = [
        (torch.tensor(row, dtype=torch.float64).to(dtype), weight / sum(weights))
        for row, weight in zip(rows, weights, strict=True)
    ]
    workers: list[list[Addend]] = [[] for _ in range(draw(st.integers(1, 5)))]
    for index in draw(st.permutations(range(count))):
        workers[draw(st.integers(0, len(workers) - 1))].append(addends[index])
    at = place(draw(st.one_of(st.none(), st.integers(-160, 130))), bits, count)
    return addends, workers, at, bits, dtype


@given(divisions())
def test_the_sum_is_bitwise_the_same_for_every_order_and_division_among_workers(
    case: tuple[list[Addend], list[list[Addend]], Grid, IntegerBits, torch.dtype],
) -> None:
    addends, workers, at, bits, dtype = case
    length = addends[0][0].numel()
    alone = sum_of(addends, at, bits, length)
    together = combined([sum_of(share, at, bits, length) for share in workers])
    assert together.exponent == alone.exponent
    assert bits_of(read(together, dtype)) == bits_of(read(alone, dtype))


@given(divisions())
def test_the_sum_is_within_half_a_unit_an_addend_of_the_exact_one(
    case: tuple[list[Addend], list[list[Addend]], Grid, IntegerBits, torch.dtype],
) -> None:
    addends, _, at, bits, _ = case
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


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("growth", [1, 3, 30, 100, 200])
def test_addends_far_beyond_the_limit_are_summed_exactly(bits: IntegerBits, growth: int) -> None:
    at = place(-100, bits, 4)
    values = torch.tensor([1.0, -1 / 3, 1.5, math.pi], dtype=torch.float32) * 2.0 ** (growth - 100)
    small = torch.tensor([0.0, 2.0**-101, -(2.0**-110), 2.0**-102])
    out = read(sum_of([(values, 1.0), (small, 1.0), (values, 1.0)], at, bits, 4), torch.float64)
    exact = [2 * Fraction(v) + Fraction(s) for v, s in zip(values.tolist(), small.tolist(), strict=True)]
    assert out.tolist() == [rounded(value, torch.float64) for value in exact]


@pytest.mark.parametrize("bits", [32, 64])
def test_what_cancels_beyond_the_limit_leaves_what_is_within_it(bits: IntegerBits) -> None:
    at = place(0, bits, 4)
    rows = [torch.tensor([2.0**100]), torch.tensor([0.75]), torch.tensor([-(2.0**100)])]
    assert read(sum_of([(row, 1.0) for row in rows], at, bits, 1), torch.float32).tolist() == [0.75]


def test_the_limit_itself_is_outside_and_what_is_below_it_inside() -> None:
    at = Grid(0, 4)
    inside, outside = (
        sum_of([(torch.tensor([v], dtype=torch.float64), 1.0)], at, 64, 1)
        for v in (math.nextafter(16, 0), 16.0)
    )
    assert (int(inside.total), inside.exponent, read(inside, torch.float64).item()) == (16, 4, 16.0)
    assert (int(outside.total), outside.exponent, read(outside, torch.float64).item()) == (0, 5, 16.0)


def test_inf_and_nan_are_where_a_float_sum_has_them() -> None:
    inf, nan = math.inf, math.nan
    rows = [
        torch.tensor([inf, -inf, inf, nan, 1.0, 2.0**90, 0.0]),
        torch.tensor([inf, 1.0, -inf, 1.0, 1.0, inf, 3.0]),
    ]
    found = sum_of([(row, 0.5) for row in rows], place(2, 64, 2), 64, 7)
    expected = (rows[0] + rows[1]) * 0.5
    torch.testing.assert_close(read(found, torch.float32), expected, rtol=0, atol=0, equal_nan=True)
    assert found.exponent == 90 - 1 + 1 + found.grid.scale, "inf and nan do not count"


def test_a_nan_has_the_same_bits_wherever_it_came_from() -> None:
    patterns = torch.tensor([0x7FC00001, 0x7FC0BEEF, 0x7F800001], dtype=torch.int32).view(torch.float32)
    found = [sum_of([(patterns[i : i + 1], 1.0)], place(0, 64, 1), 64, 1) for i in range(3)]
    found += [sum_of([(torch.tensor([v]), 1.0) for v in (math.inf, -math.inf)], place(0, 64, 2), 64, 1)]
    assert len({bits_of(read(each, torch.float32)) for each in found}) == 1


def test_infinity_only_when_the_sum_is_beyond_the_type() -> None:
    rows = [(torch.tensor([3e38, 3e38]), 1.0), (torch.tensor([3e38, -3e38]), 1.0)]
    assert read(sum_of(rows, place(None, 64, 2), 64, 2), torch.float32).tolist() == [math.inf, 0.0]


@pytest.mark.parametrize("bits", [32, 64])
def test_a_full_range_of_addends_does_not_wrap(bits: IntegerBits) -> None:
    addends = 1000
    limit = limit_for(bits, addends)
    values = torch.tensor([2.0**limit - 2.0 ** (limit - 20), -(2.0**limit) + 2.0 ** (limit - 20)])
    found = sum_of([(values, 1.0)] * addends, Grid(0, limit), bits, 2)
    assert read(found, torch.float64).tolist() == [addends * value for value in values.tolist()]
