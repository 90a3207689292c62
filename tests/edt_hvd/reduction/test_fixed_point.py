import importlib.util
import math
from collections.abc import Callable
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from edt_hvd.reduction import fixed_point
from random_tensors import BITS, random_bits, random_ints

Accumulate = Callable[[Tensor, float, Tensor, float], float]
ToFloat = Callable[[Tensor, float, Tensor], None]

FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
INTS = [torch.int32, torch.int64]
LIMITS = {torch.int32: 2.0**30, torch.int64: 2.0**51}
BLOCK = 1024  # of the native kernels
LENGTHS = [0, 1, 7, 32, 33, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK - 1, 2 * BLOCK, 2 * BLOCK + 1, 5000]
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


@pytest.fixture
def built() -> None:
    if not fixed_point.NATIVE:
        pytest.skip("the native kernels are not built")


@pytest.fixture(params=["reference", "native", "public"])
def implementation(request: pytest.FixtureRequest) -> str:
    if request.param == "native":
        request.getfixturevalue("built")
    return str(request.param)


@pytest.fixture
def accumulate(implementation: str) -> Accumulate:
    return {
        "reference": fixed_point.accumulate_reference,
        "native": native_accumulate,
        "public": fixed_point.accumulate,
    }[implementation]


@pytest.fixture
def to_float(implementation: str) -> ToFloat:
    return {
        "reference": fixed_point.to_float_reference,
        "native": native_to_float,
        "public": fixed_point.to_float,
    }[implementation]


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


def test_halves_are_rounded_to_even(accumulate: Accumulate, floats: torch.dtype, ints: torch.dtype) -> None:
    total = torch.tensor([0, 0, 0, 0, 10, 0], dtype=ints)
    gradient = torch.tensor([0.5, 1.5, -0.5, -1.5, 2.5, 0.25], dtype=floats)
    assert accumulate(gradient, 1.0, total, 8.0) == 2.5
    assert total.tolist() == [0, 2, 0, -2, 12, 0]


def test_the_product_is_rounded_to_float64_first(accumulate: Accumulate, ints: torch.dtype) -> None:
    assert 5 * Fraction(0.3) < Fraction(3, 2)
    assert 5 * 0.3 == 1.5
    total = torch.zeros(64, dtype=ints)
    accumulate(torch.full((64,), 5.0), 0.3, total, 8.0)
    assert total.tolist() == [2] * 64  # a fused multiply-add gives 1


@pytest.mark.parametrize("length", LENGTHS)
def test_every_length(accumulate: Accumulate, floats: torch.dtype, ints: torch.dtype, length: int) -> None:
    generator = torch.Generator().manual_seed(length)
    gradient = torch.randn(length, dtype=torch.float64, generator=generator).to(floats)
    total = random_ints(length, ints, seed=length)
    expected = expected_sum(gradient, 0.7 * 2.0**28, total, 2.0**30)
    largest = accumulate(gradient, 0.7 * 2.0**28, total, 2.0**30)
    assert total.tolist() == expected
    assert largest == max(map(abs, gradient.tolist()), default=0.0)


@pytest.mark.parametrize("factor", [1.0, 0.3, 2.0**40 / 3])
@pytest.mark.parametrize("floats", FLOATS[:2], ids=name)
def test_every_half_precision_number(
    accumulate: Accumulate, floats: torch.dtype, ints: torch.dtype, factor: float
) -> None:
    gradient = torch.arange(-(2**15), 2**15, dtype=torch.int16).view(floats)
    total = random_ints(2**16, ints)
    expected = expected_sum(gradient, factor, total, LIMITS[ints])
    assert accumulate(gradient, factor, total, LIMITS[ints]) == math.inf
    assert total.tolist() == expected


@pytest.mark.parametrize("limit", [1.0, 2.0**10, 2.0**30])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_products_from_the_limit_on_are_left_out(
    accumulate: Accumulate, floats: torch.dtype, ints: torch.dtype, limit: float, sign: float
) -> None:
    at = torch.ones(1, dtype=floats)
    below = (at.view(BITS[at.element_size()]) - 1).view(floats)
    gradient = sign * torch.cat([below, at, 2 * at, below])
    total = torch.full((4,), 5, dtype=ints)
    assert accumulate(gradient, limit, total, limit) == 2.0
    addend = round(sign * below.item() * limit)
    assert total.tolist() == [5 + addend, 5, 5, 5 + addend]


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("place", [0, BLOCK - 1, BLOCK, 3 * BLOCK + 7, 5 * BLOCK])
def test_infinities_and_nan_are_left_out_and_reported(
    accumulate: Accumulate, floats: torch.dtype, ints: torch.dtype, value: float, place: int
) -> None:
    gradient = torch.ones(5 * BLOCK + 1, dtype=floats)
    gradient[place] = value
    total = torch.zeros(len(gradient), dtype=ints)
    assert accumulate(gradient, 3.0, total, 2.0**20) == math.inf
    assert total.tolist() == [0 if i == place else 3 for i in range(len(gradient))]


def test_nan_with_its_sign_set_is_reported(accumulate: Accumulate, ints: torch.dtype) -> None:
    gradient = torch.tensor([-1], dtype=torch.int32).view(torch.float32)
    assert accumulate(gradient, 1.0, torch.zeros(1, dtype=ints), 8.0) == math.inf


def test_additions_wrap(accumulate: Accumulate, ints: torch.dtype) -> None:
    ends = torch.iinfo(ints)
    total = torch.tensor([ends.max, ends.min], dtype=ints)
    accumulate(torch.tensor([2.0, -2.0]), 1.0, total, 8.0)
    assert total.tolist() == [ends.min + 1, ends.max - 1]
    accumulate(torch.tensor([-2.0, 2.0]), 1.0, total, 8.0)
    assert total.tolist() == [ends.max, ends.min]


def test_factors_at_the_ends_of_the_range(accumulate: Accumulate, ints: torch.dtype) -> None:
    total = torch.tensor([3, 3], dtype=ints)
    assert accumulate(torch.tensor([1.0, 0.0]), math.ldexp(1, 1023), total, LIMITS[ints]) == 1.0
    assert accumulate(torch.tensor([1.0, 1e-45]), math.ulp(0.0), total, LIMITS[ints]) == 1.0
    assert total.tolist() == [3, 3]


@given(
    seed=st.integers(0, 2**32),
    floats=st.sampled_from(FLOATS),
    ints=st.sampled_from(INTS),
    length=st.integers(0, 100),
    factor=st.floats(0, exclude_min=True, allow_infinity=False) | st.floats(2.0**-40, 2.0**40),
    exponent=st.integers(0, 51),
)
@pytest.mark.usefixtures("built")
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


@given(
    values=st.lists(st.floats(-(2.0**20), 2.0**20, width=32), max_size=20),
    factor=st.floats(2.0**-10, 2.0**10),
    exponent=st.integers(0, 30),
)
def test_the_largest_times_the_factor_tells_whether_some_are_left_out(
    values: list[float], factor: float, exponent: int
) -> None:
    limit = 2.0**exponent
    total = torch.zeros(len(values), dtype=torch.int64)
    largest = fixed_point.accumulate(torch.tensor(values), factor, total, limit)
    everything = [round(value * factor) for value in values]
    left_out = any(not abs(value * factor) < limit for value in values)
    assert (largest * factor >= limit) == left_out
    assert (total.tolist() == everything) or left_out


@given(values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30), random=st.randoms())
def test_the_sum_does_not_depend_on_the_order(values: list[float], random: "st.randoms") -> None:
    def total_of(addends: list[float]) -> int:
        total = torch.zeros(1, dtype=torch.int64)
        for addend in addends:
            fixed_point.accumulate(torch.tensor([addend]), 2.0**30, total, 2.0**51)
        return int(total.item())

    shuffled = list(values)
    random.shuffle(shuffled)
    assert total_of(shuffled) == total_of(values)


@pytest.mark.parametrize("length", LENGTHS)
def test_integers_become_floats(
    to_float: ToFloat, floats: torch.dtype, ints: torch.dtype, length: int
) -> None:
    total = random_ints(length, ints, seed=length)
    out = torch.full((length,), math.nan, dtype=floats)
    to_float(total, 2.0**-30, out)
    expected = torch.tensor([float(value) * 2.0**-30 for value in total.tolist()], dtype=torch.float64)
    if floats != torch.float64:
        expected = expected.float().to(floats)
    assert bits_of(out) == bits_of(expected)


@pytest.mark.parametrize(
    "value",
    [0, 1, -1, 2**53 + 1, 2**53 + 3, -(2**53) - 1, 2**62 + 2**9, 2**62 + 2**9 + 1, 2**63 - 1, -(2**63)],
)
def test_long_integers_are_rounded_to_nearest_even(to_float: ToFloat, value: int) -> None:
    out = torch.empty(33, dtype=torch.float64)
    to_float(torch.full((33,), value), 1.0, out)
    assert bits_of(out) == bits_of(torch.full((33,), float(value), dtype=torch.float64))


@pytest.mark.parametrize(
    "total, scale, expected",
    [
        (2**11 + 1, 2.0**-11, 1.0),  # halves to even
        (2**11 + 3, 2.0**-11, 1 + 2.0**-9),
        (2**40 + 2**29 + 1, 2.0**-40, 1.0),  # first to float32, which is a half then
        (65519, 1.0, 65504.0),
        (65520, 1.0, math.inf),
        (-65520, 1.0, -math.inf),
        (2**62, 2.0**1000, math.inf),
        (1, 2.0**-24, 2.0**-24),  # the smallest subnormal
        (1, 2.0**-25, 0.0),
        (3, 2.0**-26, 2.0**-24),
        (3, 2.0**-25, 2.0**-23),
        (2**12 - 1, 2.0**-26, 2.0**-14),  # the smallest normal number
    ],
)
def test_float16_is_rounded_to_nearest_even(
    to_float: ToFloat, total: int, scale: float, expected: float
) -> None:
    out = torch.empty(33, dtype=torch.float16)
    to_float(torch.full((33,), total), scale, out)
    assert out.tolist() == [expected] * 33


@pytest.mark.parametrize(
    "total, scale, expected",
    [
        (2**8 + 1, 2.0**-8, 1.0),
        (2**8 + 3, 2.0**-8, 1 + 2.0**-6),
        (2**9 - 1, 2.0**119, math.inf),
        (2**8 - 1, 2.0**120, (2**8 - 1) * 2.0**120),
        (1, 2.0**-133, 2.0**-133),
        (1, 2.0**-134, 0.0),
        (3, 2.0**-134, 2.0**-132),
    ],
)
def test_bfloat16_is_rounded_to_nearest_even(
    to_float: ToFloat, total: int, scale: float, expected: float
) -> None:
    out = torch.empty(33, dtype=torch.bfloat16)
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
@pytest.mark.usefixtures("built")
def test_native_converts_as_the_reference_bit_by_bit(
    seed: int, floats: torch.dtype, ints: torch.dtype, length: int, shift: int, exponent: int
) -> None:
    total = random_ints(length, ints, seed) >> shift % torch.iinfo(ints).bits
    expected, found = torch.empty(2, length, dtype=floats)
    fixed_point.to_float_reference(total, math.ldexp(1, exponent), expected)
    native_to_float(total, math.ldexp(1, exponent), found)
    assert bits_of(found) == bits_of(expected)


@pytest.mark.parametrize("length", [2 * PER_THREAD - 1, 2 * PER_THREAD, 3 * PER_THREAD + 5])
@pytest.mark.usefixtures("built")
def test_the_bits_do_not_depend_on_the_threads(floats: torch.dtype, ints: torch.dtype, length: int) -> None:
    gradient = random_bits(length, floats)
    gradient[~gradient.isfinite()] = 0
    gradient[-1] = torch.finfo(floats).max  # the largest is found whichever thread meets it
    expected = random_ints(length, ints)
    fixed_point.accumulate_reference(gradient, 0.3, expected, LIMITS[ints])
    back = torch.empty_like(gradient)
    fixed_point.to_float_reference(expected, 2.0**-20, back)
    for threads in (1, 2, 3, 8):
        found = random_ints(length, ints)
        largest = native_accumulate(gradient, 0.3, found, LIMITS[ints], threads)
        assert largest == torch.finfo(floats).max
        assert torch.equal(found, expected)
        out = torch.full_like(gradient, math.nan)
        native_to_float(found, 2.0**-20, out, threads)
        bits = BITS[floats.itemsize]
        assert torch.equal(out.view(bits), back.view(bits))


@pytest.mark.parametrize(
    "gradient, total, error, match",
    [
        (
            torch.zeros(2, dtype=torch.int32),
            torch.zeros(2, dtype=torch.int64),
            TypeError,
            "gradient .* not int32",
        ),
        ([0.0], torch.zeros(1, dtype=torch.int64), TypeError, "gradient must be .* not list"),
        (torch.zeros(1), torch.zeros(1), TypeError, "total must be .* int32, int64, not float32"),
        (torch.zeros(2), torch.zeros(1, dtype=torch.int64), ValueError, "gradient has 2 values, total 1"),
        (
            torch.zeros(4)[::2],
            torch.zeros(2, dtype=torch.int64),
            ValueError,
            "gradient must be .* contiguous",
        ),
        (torch.zeros(2), torch.zeros(4, dtype=torch.int64)[::2], ValueError, "total must be .* contiguous"),
        (torch.zeros(1, 1), torch.zeros(1, dtype=torch.int64), ValueError, r"shape \(1, 1\)"),
        (
            torch.zeros(1, device="meta"),
            torch.zeros(1, dtype=torch.int64),
            ValueError,
            "on meta, total on cpu",
        ),
        (
            torch.zeros(1, device="meta"),
            torch.zeros(1, dtype=torch.int64, device="meta"),
            ValueError,
            "on meta, and this function adds on the CPU",
        ),
    ],
)
def test_tensors_that_do_not_fit_are_refused(
    gradient: Tensor, total: Tensor, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        fixed_point.accumulate(gradient, 1.0, total, 8.0)


@pytest.mark.parametrize(
    "total, out, error, match",
    [
        (torch.zeros(1), torch.zeros(1), TypeError, "total must be .* not float32"),
        (
            torch.zeros(1, dtype=torch.int64),
            torch.zeros(1, dtype=torch.int64),
            TypeError,
            "out must .* not int64",
        ),
        (torch.zeros(1, dtype=torch.int64), torch.zeros(2), ValueError, "out has 2 values, total 1"),
        (torch.zeros(2, dtype=torch.int64), torch.zeros(4)[::2], ValueError, "out must be .* contiguous"),
        (torch.zeros(1, dtype=torch.int64), torch.zeros(1, device="meta"), ValueError, "out is on meta"),
    ],
)
def test_outputs_that_do_not_fit_are_refused(
    total: Tensor, out: Tensor, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        fixed_point.to_float(total, 1.0, out)


@pytest.mark.parametrize("factor", [0.0, -2.0, math.inf, math.nan])
def test_factors_that_are_not_positive_and_finite_are_refused(factor: float) -> None:
    with pytest.raises(ValueError, match="factor must be positive and finite"):
        fixed_point.accumulate(torch.zeros(1), factor, torch.zeros(1, dtype=torch.int64), 8.0)


@pytest.mark.parametrize(
    "limit, ints",
    [
        (0.5, torch.int64),
        (3.0, torch.int64),
        (2.0**52, torch.int64),
        (2.0**31, torch.int32),
        (math.nan, torch.int64),
    ],
)
def test_limits_that_are_no_power_of_two_in_range_are_refused(limit: float, ints: torch.dtype) -> None:
    with pytest.raises(ValueError, match="limit must be a power of two from 1 to"):
        fixed_point.accumulate(torch.zeros(1), 1.0, torch.zeros(1, dtype=ints), limit)


@pytest.mark.parametrize("scale", [0.0, -2.0, 3.0, math.inf, math.nan])
def test_scales_that_are_no_power_of_two_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="scale must be a positive power of two"):
        fixed_point.to_float(torch.zeros(1, dtype=torch.int64), scale, torch.zeros(1))
