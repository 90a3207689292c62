import importlib.util
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edt_hvd import fixed_point

Accumulate = Callable[[NDArray[np.float32], float, NDArray[np.int64]], bool]

INT64 = np.iinfo(np.int64)
LENGTHS = [0, 1, 7, 1023, 1024, 1025, 5000]  # around the kernel's block length


def native() -> Accumulate:
    if importlib.util.find_spec("edt_hvd._native") is None:
        pytest.skip("the native kernels are not built")
    from edt_hvd import _native

    return _native.accumulate


@pytest.fixture(params=["reference", "native", "public"], scope="module")
def accumulate(request: pytest.FixtureRequest) -> Accumulate:
    if request.param == "native":
        return native()
    return fixed_point.accumulate if request.param == "public" else fixed_point.accumulate_reference


def f32(*values: float) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32)


def i64(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def test_the_native_kernel_is_used_where_it_is_built() -> None:
    assert (importlib.util.find_spec("edt_hvd._native") is not None) == fixed_point.NATIVE


def test_halves_are_rounded_to_even(accumulate: Accumulate) -> None:
    total = i64(0, 0, 0, 0, 10, 0)
    assert not accumulate(f32(0.5, 1.5, -0.5, -1.5, 2.5, 0.25), 1.0, total)
    assert total.tolist() == [0, 2, 0, -2, 12, 0]


def test_the_scale_is_applied_before_rounding(accumulate: Accumulate) -> None:
    total = i64(1, 1)
    assert not accumulate(f32(0.1, -3.0), 2.0**40, total)
    assert total.tolist() == [1 + round(Fraction(float(np.float32(0.1))) * 2**40), 1 - 3 * 2**40]


@pytest.mark.parametrize("length", LENGTHS)
def test_every_length(accumulate: Accumulate, length: int) -> None:
    generator = np.random.default_rng(length)
    gradient = generator.normal(size=length).astype(np.float32)
    total = generator.integers(-(2**60), 2**60, size=length)
    expected = [t + round(Fraction(float(g)) * 2**30) for g, t in zip(gradient, total, strict=True)]
    assert not accumulate(gradient, 2.0**30, total)
    assert total.tolist() == expected


@pytest.mark.parametrize("size", [2.0**50, 2.0**51, 2.0**52, 2.0**53, 2.0**61, 2.0**62 - 2.0**38])
@pytest.mark.parametrize("sign", [1, -1])
def test_large_values_are_exact(accumulate: Accumulate, size: float, sign: int) -> None:
    value = np.float32(sign * size)
    total = i64(7)
    assert not accumulate(f32(float(value)), 1.0, total)
    assert total.tolist() == [7 + int(value)]


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 2.0**62, -(2.0**62), 2.0**100])
@pytest.mark.parametrize("place", [0, 1500, 2999])
def test_values_out_of_range_overflow(accumulate: Accumulate, value: float, place: int) -> None:
    gradient = np.ones(3000, dtype=np.float32)
    gradient[place] = value
    assert accumulate(gradient, 1.0, np.zeros(3000, dtype=np.int64))


@pytest.mark.parametrize(
    "start, value, overflows",
    [
        (INT64.max, 1.0, True),
        (INT64.max - 1, 1.0, False),
        (INT64.min, -1.0, True),
        (INT64.min + 1, -1.0, False),
        (INT64.max, -1.0, False),
        (INT64.min, 1.0, False),
        (INT64.max - 2**61, 2.0**61, False),
        (INT64.max - 2**61 + 1, 2.0**61, True),
        (INT64.min + 2**61, -(2.0**61), False),
        (INT64.min + 2**61 - 1, -(2.0**61), True),
    ],
)
def test_additions_out_of_range_overflow(
    accumulate: Accumulate, start: int, value: float, overflows: bool
) -> None:
    total = i64(start)
    assert accumulate(f32(value), 1.0, total) == overflows
    if not overflows:
        assert total.tolist() == [start + int(value)]


def test_scales_beyond_float_range_neither_crash_nor_pass(accumulate: Accumulate) -> None:
    assert accumulate(f32(1.0), 2.0**1023, i64(0))
    total = i64(3)
    assert not accumulate(f32(np.float32(1e-45)), 2.0**-1000, total)
    assert total.tolist() == [3]


@given(
    values=st.lists(st.floats(width=32), max_size=40),
    exponent=st.integers(-60, 60),
    start=st.integers(INT64.min, INT64.max),
)
def test_native_equals_reference_bit_by_bit(values: list[float], exponent: int, start: int) -> None:
    kernel = native()
    gradient = f32(*values)
    expected = np.full(len(values), start, dtype=np.int64)
    found = expected.copy()
    overflowed = fixed_point.accumulate_reference(gradient, 2.0**exponent, expected)
    assert kernel(gradient, 2.0**exponent, found) == overflowed
    if not overflowed:
        assert found.tobytes() == expected.tobytes()


@given(values=st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30), seed=st.randoms())
def test_the_sum_does_not_depend_on_the_order(values: list[float], seed: "st.randoms") -> None:
    def total_of(addends: list[float]) -> int:
        total = i64(0)
        for addend in addends:
            assert not fixed_point.accumulate(f32(addend), 2.0**30, total)
        return int(total[0])

    shuffled = list(values)
    seed.shuffle(shuffled)
    assert total_of(shuffled) == total_of(values)


@pytest.mark.parametrize(
    "gradient, total, error, match",
    [
        (np.zeros(2), i64(0, 0), TypeError, "gradient must be a NumPy array of float32, not float64"),
        ([0.0], i64(0), TypeError, "gradient must be .* not list"),
        (f32(0), np.zeros(1), TypeError, "total must be a NumPy array of int64, not float64"),
        (f32(0, 1), i64(0), ValueError, "gradient has 2 values, total 1"),
        (f32(0, 1, 2, 3)[::2], i64(0, 0), ValueError, "contiguous"),
        (f32(0).reshape(1, 1), i64(0), ValueError, r"shape \(1, 1\)"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(
    gradient: NDArray[np.float32], total: NDArray[np.int64], error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        fixed_point.accumulate(gradient, 1.0, total)


@pytest.mark.parametrize("scale", [0.0, -2.0, 3.0, float("inf"), float("nan")])
def test_scales_that_are_no_power_of_two_are_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="positive power of two"):
        fixed_point.accumulate(f32(0), scale, i64(0))


def test_a_read_only_total_is_refused() -> None:
    total = i64(0)
    total.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        fixed_point.accumulate(f32(0), 1.0, total)


def test_the_native_kernel_converts_nothing() -> None:
    kernel = native()
    with pytest.raises(TypeError):
        kernel(np.zeros(2), 1.0, i64(0, 0))  # type: ignore[arg-type]  # the wrong dtype is the point
    with pytest.raises(TypeError):
        kernel(f32(0, 1, 2, 3)[::2], 1.0, i64(0, 0))
    with pytest.raises(ValueError, match="differ in length"):
        kernel(f32(0, 1), 1.0, i64(0))
