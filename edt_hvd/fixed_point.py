"""Sums that do not depend on the order of their addends: gradients in fixed point.

A float32 value times a power of two is exact in float64; rounded to an integer it can be added to others in
any order and grouping with the same result. Two implementations, equal bit by bit: NumPy below, which is the
specification, and the compiled kernel in ``native/fixed_point.cpp``, which is used where it is built.
"""

import importlib.util
import math
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

#: Whether the compiled kernel is there; running from the sources, nothing may be built.
NATIVE: Final = importlib.util.find_spec("edt_hvd._native") is not None

#: Scaled values must be smaller than this in size, so that adding two of them cannot leave int64.
LIMIT: Final = 2.0**62


def accumulate(gradient: NDArray[np.float32], scale: float, total: NDArray[np.int64]) -> bool:
    """Add ``round(gradient * scale)``, halves to even, to ``total`` in place.

    Args:
        gradient: float32, shape ``(n,)``, contiguous.
        scale: A positive power of two; the integers of ``total`` count in units of ``1 / scale``.
        total: int64, shape ``(n,)``, contiguous, writable.

    Returns:
        Whether that overflowed: a scaled value is not finite or at least ``LIMIT`` in size, or an addition
        leaves int64. The content of ``total`` is unspecified then; repeat the sum with a smaller scale.

    Raises:
        TypeError: An array has another type or dtype.
        ValueError: A shape, the memory layout or the scale is not as described.
    """
    _check(gradient, scale, total)
    if NATIVE:
        from edt_hvd import _native

        return _native.accumulate(gradient, scale, total)
    return accumulate_reference(gradient, scale, total)


def accumulate_reference(gradient: NDArray[np.float32], scale: float, total: NDArray[np.int64]) -> bool:
    """Do what :func:`accumulate` does, in NumPy; its arguments are not checked."""
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        scaled = gradient.astype(np.float64) * scale
    if not np.all(np.abs(scaled) < LIMIT):
        return True
    addend = np.rint(scaled).astype(np.int64)
    after = total + addend
    overflowed = np.any(((total ^ after) & (addend ^ after)) < 0)
    total[:] = after
    return bool(overflowed)


def _check(gradient: Any, scale: float, total: Any) -> None:
    for name, array, dtype in (("gradient", gradient, np.float32), ("total", total, np.int64)):
        if not isinstance(array, np.ndarray) or array.dtype != dtype:
            found = array.dtype if isinstance(array, np.ndarray) else type(array).__name__
            raise TypeError(
                f"{name} must be a NumPy array of {np.dtype(dtype)}, not {found}: convert it first"
            )
        if array.ndim != 1 or not array.flags.c_contiguous:
            raise ValueError(
                f"{name} must be one-dimensional and contiguous, not of shape {array.shape} with strides "
                f"{array.strides}: pass array.reshape(-1) of a contiguous array"
            )
    if not total.flags.writeable:
        raise ValueError("total is read-only, and the sum is written into it: pass a writable array")
    if gradient.shape != total.shape:
        raise ValueError(
            f"gradient has {gradient.size} values, total {total.size}: they must be equal in length"
        )
    if not (math.isfinite(scale) and scale > 0 and math.frexp(scale)[0] == 0.5):
        raise ValueError(f"scale must be a positive power of two, not {scale!r}: use 2.0**k")
