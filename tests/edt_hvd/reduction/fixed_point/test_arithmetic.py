import importlib.util
import math
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from edt_hvd.reduction.fixed_point import arithmetic as fixed_point
from random_tensors import BITS, random_bits, random_ints

Accumulate = Callable[[Tensor, float, Tensor, float], float]
ToFloat = Callable[[Tensor, float, Tensor], None]

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTS = [torch.int32, torch.int64]
LIMITS = {torch.int32: 2.0**30, torch.int64: 2.0**51}
BLOCK = 1024  # of the native kernels
LENGTHS = [0, 1, 33, BLOCK - 1, BLOCK, 2 * BLOCK + 1]
PER_THREAD = 2**18  # the fewest elements that the native kernels start a thread for


def name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def native_accumulate(
    gradient: Tensor, factor: float, total: Tensor, limit: float, threads: int = 1
) -> float:
    from edt_hvd import _native

    kernel = _native.accumulate[name(gradient.dtype), name(total.dtype)]
    return kernel(gradient.data_ptr(), factor, total.data_ptr(), limit, gradient.numel(), threads)


def native_to_float(total: Tensor, scale: float, out: Tensor, threads: int = 1) -> None:
    from edt_hvd import _native

    kernel = _native.to_float[name(total.dtype), name(out.dtype)]
    kernel(total.data_ptr(), scale, out.data_ptr(), out.numel(), threads)


needs_native = pytest.mark.skipif(not fixed_point.NATIVE, reason="the native kernels are not built")


@pytest.fixture(params=["reference", pytest.param("native", marks=needs_native)])
def implementation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def accumulate(implementation: str) -> Accumulate:
    return native_accumulate if implementation == "native" else fixed_point.accumulate_reference


@pytest.fixture
def to_float(implementation: str) -> ToFloat:
    return native_to_float if implementation == "native" else fixed_point.to_float_reference


@pytest.fixture(params=FLOATS, ids=name)
def floats(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture(params=INTS, ids=name)
def ints(request: pytest.FixtureRequest) -> torch.dtype:
    return request.param  # type: ignore[no-any-return]


def bits_of(tensor: Tensor) -> list[int]:
    return tensor.view(BITS[tensor.element_size()]).tolist()  # type: ignore[no-any-return]


def expected_sum(gradient: Tensor, factor: float, total: Tensor, limit: float) -> list[int]:
    """What accumulate is to leave in total, in Python's own arithmetic."""
    modulus = 2 ** (8 * total.element_size())

    def add(value: float, before: int) -> int:
        product = value * factor
        if not abs(product) < limit:
            return before
        return (before + round(product) + modulus // 2) % modulus - modulus // 2

    return [add(value, before) for value, before in zip(gradient.tolist(), total.tolist(), strict=True)]


def test_the_native_kernels_are_used_where_they_are_built() -> None:
    assert (importlib.util.find_spec("edt_hvd._native") is not None) == fixed_point.NATIVE


@pytest.mark.parametrize("length", LENGTHS)
def test_sums_are_those_of_pythons_own_arithmetic(
    accumulate: Accumulate, floats: torch.dtype, ints: torch.dtype, length: int
) -> None:
    generator = torch.Generator().manual_seed(length)
    gradient = torch.randn(length, dtype=torch.float64, generator=generator).to(floats)
    total = random_ints(length, ints, seed=length)
    expected = expected_sum(gradient, 0.7 * 2.0**28, total, 2.0**30)
    largest = accumulate(gradient, 0.7 * 2.0**28, total, 2.0**30)
    assert total.tolist() == expected
    assert largest == max(map(abs, gradient.tolist()), default=0.0)


def test_the_product_is_rounded_to_float64_first(accumulate: Accumulate, ints: torch.dtype) -> None:
    assert 5 * Fraction(0.3) < Fraction(3, 2)
    assert 5 * 0.3 == 1.5
    total = torch.zeros(64, dtype=ints)
    accumulate(torch.full((64,), 5.0), 0.3, total, 8.0)
    assert total.tolist() == [2] * 64  # a fused multiply-add gives 1


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_products_from_the_limit_on_are_left_out(
    accumulate: Accumulate, floats: torch.dtype, ints: torch.dtype, sign: float
) -> None:
    at = torch.ones(1, dtype=floats)
    below = (at.view(BITS[at.element_size()]) - 1).view(floats)
    gradient = sign * torch.cat([below, at, 2 * at, below])
    for limit in (1.0, 2.0**10, 2.0**30):
        total = torch.full((4,), 5, dtype=ints)
        assert accumulate(gradient, limit, total, limit) == 2.0
        addend = round(sign * below.item() * limit)
        assert total.tolist() == [5 + addend, 5, 5, 5 + addend]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, -math.nan])
def test_infinities_and_nan_are_left_out_and_reported(
    accumulate: Accumulate, floats: torch.dtype, ints: torch.dtype, value: float
) -> None:
    for place in (0, BLOCK - 1, BLOCK, 3 * BLOCK + 7, 5 * BLOCK):
        gradient = torch.ones(5 * BLOCK + 1, dtype=floats)
        gradient[place] = value
        total = torch.zeros(len(gradient), dtype=ints)
        expected = torch.full_like(total, 3)
        expected[place] = 0
        assert accumulate(gradient, 3.0, total, 2.0**20) == math.inf
        assert torch.equal(total, expected)


@given(
    seed=st.integers(0, 2**32),
    floats=st.sampled_from(FLOATS),
    ints=st.sampled_from(INTS),
    length=st.integers(0, 100),
    factor=st.floats(0, exclude_min=True, allow_infinity=False) | st.floats(2.0**-40, 2.0**40),
    exponent=st.integers(0, 51),
)
@needs_native
def test_native_accumulates_as_the_reference_bit_by_bit(
    seed: int, floats: torch.dtype, ints: torch.dtype, length: int, factor: float, exponent: int
) -> None:
    gradient = random_bits(length, floats, seed)
    limit = min(2.0**exponent, LIMITS[ints])
    expected = random_ints(length, ints, seed + 1)
    found = expected.clone()
    largest = fixed_point.accumulate_reference(gradient, factor, expected, limit)
    assert native_accumulate(gradient, factor, found, limit) == largest
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize(
    "floats, total, scale, expected",
    [
        *(
            (torch.float64, n, 1.0, float(n))
            for n in (2**53 + 1, 2**53 + 3, -(2**53) - 1, 2**63 - 1, -(2**63))
        ),
        (torch.float16, 2**11 + 1, 2.0**-11, 1.0),  # halves to even
        (torch.float16, 2**40 + 2**29 + 1, 2.0**-40, 1.0),  # first to float32, which is a half then
        (torch.float16, 65519, 1.0, 65504.0),
        (torch.float16, -65520, 1.0, -math.inf),
        (torch.float16, 1, 2.0**-24, 2.0**-24),  # the smallest subnormal
        (torch.float16, 1, 2.0**-25, 0.0),
        (torch.float16, 2**12 - 1, 2.0**-26, 2.0**-14),  # the smallest normal number
        (torch.bfloat16, 2**8 + 1, 2.0**-8, 1.0),
        (torch.bfloat16, 2**9 - 1, 2.0**119, math.inf),
        (torch.bfloat16, 1, 2.0**-133, 2.0**-133),
    ],
)
def test_integers_are_rounded_to_nearest_even(
    to_float: ToFloat, floats: torch.dtype, total: int, scale: float, expected: float
) -> None:
    out = torch.empty(33, dtype=floats)
    to_float(torch.full((33,), total), scale, out)
    assert out.tolist() == [expected] * 33


@given(
    seed=st.integers(0, 2**32),
    floats=st.sampled_from(FLOATS),
    ints=st.sampled_from(INTS),
    length=st.integers(0, 100),
    shift=st.integers(0, 63),
    exponent=st.integers(-1074, 1023) | st.integers(-80, 20),
)
@needs_native
def test_native_converts_as_the_reference_bit_by_bit(
    seed: int, floats: torch.dtype, ints: torch.dtype, length: int, shift: int, exponent: int
) -> None:
    total = random_ints(length, ints, seed) >> shift % torch.iinfo(ints).bits
    expected, found = torch.empty(2, length, dtype=floats)
    fixed_point.to_float_reference(total, math.ldexp(1, exponent), expected)
    native_to_float(total, math.ldexp(1, exponent), found)
    assert bits_of(found) == bits_of(expected)


@needs_native
def test_the_bits_do_not_depend_on_the_threads(floats: torch.dtype, ints: torch.dtype) -> None:
    length = 3 * PER_THREAD + 5
    gradient = random_bits(length, floats)
    gradient[~gradient.isfinite()] = 0
    gradient[-1] = torch.finfo(floats).max  # the largest is found whichever thread meets it
    expected, back = random_ints(length, ints), torch.empty_like(gradient)
    fixed_point.accumulate_reference(gradient, 0.3, expected, LIMITS[ints])
    fixed_point.to_float_reference(expected, 2.0**-20, back)
    for threads in (1, 2, 8):
        found, out = random_ints(length, ints), torch.full_like(gradient, math.nan)
        largest = native_accumulate(gradient, 0.3, found, LIMITS[ints], threads)
        assert largest == torch.finfo(floats).max
        assert torch.equal(found, expected)
        native_to_float(found, 2.0**-20, out, threads)
        assert torch.equal(out.view(BITS[floats.itemsize]), back.view(BITS[floats.itemsize]))


INT, FLOAT, ON_META = torch.zeros(1).long(), torch.zeros(1), torch.zeros(1, device="meta")


@pytest.mark.parametrize(
    "gradient, total, error, match",
    [
        (INT, INT, TypeError, "gradient .* not int64"),
        (FLOAT, FLOAT, TypeError, "total must be .* int32, int64, not float32"),
        (torch.zeros(2), INT, ValueError, "gradient has 2 values, total 1"),
        (torch.zeros(4)[::2], torch.zeros(2).long(), ValueError, "gradient must be .* contiguous"),
        (ON_META, INT, ValueError, "on meta, total on cpu"),
        (ON_META, ON_META.long(), ValueError, "on meta, and this function adds on the CPU"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    gradient: Tensor, total: Tensor, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        fixed_point.accumulate(gradient, 1.0, total, 8.0)


@pytest.mark.parametrize("value", [0.0, -2.0, math.inf, math.nan])
def test_numbers_out_of_range_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="factor must be positive and finite"):
        fixed_point.accumulate(FLOAT, value, INT, 8.0)
    for limit in (value, 0.5, 3.0, 2.0**52):
        with pytest.raises(ValueError, match="limit must be a power of two from 1 to"):
            fixed_point.accumulate(FLOAT, 1.0, INT, limit)
    with pytest.raises(ValueError, match="limit must be a power of two from 1 to"):
        fixed_point.accumulate(FLOAT, 1.0, INT.int(), 2.0**31)
    for scale in (value, 3.0):
        with pytest.raises(ValueError, match="scale must be a positive power of two"):
            fixed_point.to_float(INT, scale, FLOAT)
