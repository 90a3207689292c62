import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_hvd.reduction.fixed_point import grid
from edt_hvd.reduction.fixed_point.grid import (
    HEADROOM,
    LEVEL_BITS,
    MAX_LIMIT,
    PACE,
    Grid,
    IntegerBits,
    exponent_of,
    place,
    remember,
)

all_bits = pytest.mark.parametrize("bits", [32, 64])
exponents = st.integers(-1074, 1024)


@given(st.sampled_from([32, 64]), st.integers(1, 2**22))
def test_addends_at_the_limit_never_leave_the_type(bits: IntegerBits, addends: int) -> None:
    limit = grid.limit_for(bits, addends)
    assert limit <= MAX_LIMIT
    assert addends * 2**limit < 2 ** (bits - 1)
    assert limit == MAX_LIMIT or addends * 2 ** (limit + 1) > 2 ** (bits - 2), "a bit is wasted"


@given(st.sampled_from([32, 64]), st.integers(1, 4096), st.integers(-800, 800))
def test_the_last_steps_largest_addend_has_headroom(bits: IntegerBits, addends: int, exponent: int) -> None:
    found = place(exponent, bits, addends)
    assert exponent + found.scale == found.limit - HEADROOM[bits]


@all_bits
def test_an_unknown_size_gets_a_fine_grid(bits: IntegerBits) -> None:
    found = place(None, bits, 8)
    first = {64: 4, 32: 29}[bits]
    assert place(-first - HEADROOM[bits], bits, 8) == found
    assert found.scale - found.limit == first


@given(st.integers(0, MAX_LIMIT), st.integers(-100, 2000))
def test_the_levels_hold_every_bit_beyond_the_limit_and_no_level_is_spare(limit: int, exponent: int) -> None:
    at = Grid(0, limit)
    levels = at.levels(exponent)
    if exponent <= limit:
        assert levels == 0
        return
    assert at.level_unit(1) <= limit - 52, "the last bit of a float64 at the limit is in the first level"
    assert at.level_unit(levels) + LEVEL_BITS >= exponent
    assert at.level_unit(levels) < exponent


@all_bits
def test_history_follows_at_its_pace(bits: IntegerBits) -> None:
    up, down = PACE[bits]
    assert remember(None, None, bits) is None
    assert remember(None, -7, bits) == -7
    assert remember(3, None, bits) == 3
    assert remember(3, 40, bits) == 3 + up
    assert remember(3, -100, bits) == 3 - down
    assert remember(3, 3 + up, bits) == 3 + up
    assert remember(3, 3 - down, bits) == 3 - down


@given(st.sampled_from([32, 64]), st.integers(1, 2**16), st.integers(1, 2**16), exponents)
def test_sums_that_may_leave_the_type_do_not_fit(
    bits: IntegerBits, expected: int, addends: int, exponent: int
) -> None:
    at = place(0, bits, expected)
    largest = 2 ** max(0, min(exponent, at.limit))  # rounding may go up to it
    assert grid.fits(at, bits, addends, exponent) == (addends * largest < 2 ** (bits - 1))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_an_exponent_bounds_its_number_closely(value: float) -> None:
    exponent = exponent_of(value)
    if exponent is None:
        assert value == 0
    else:
        mantissa = math.ldexp(abs(value), -exponent) if exponent > -1000 else math.frexp(abs(value))[0]
        assert 0.5 <= mantissa < 1


def test_what_is_not_finite_has_no_exponent() -> None:
    with pytest.raises(ValueError, match="give a finite number"):
        exponent_of(math.inf)
