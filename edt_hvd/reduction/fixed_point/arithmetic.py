"""Sums that do not depend on the order of their addends: gradients in fixed point.

A gradient times a factor is rounded to an integer, and integers can be added in any order and grouping with
the same result. Two implementations, equal bit by bit: the reference in torch operations below, which is the
specification, and compiled kernels in ``native/``, which are used on the CPU where they are built. For CUDA
tensors there is :mod:`edt_hvd.reduction.fixed_point.cuda`.
"""

import importlib.util
import math
from typing import Any, Final

import torch
from torch import Tensor

#: Whether the compiled kernels are there; running from the sources, nothing may be built.
NATIVE: Final = importlib.util.find_spec("edt_hvd._native") is not None

#: The largest limit allowed. Below it, adding 1.5 * 2**52 to a float64 rounds it to an integer, which is then
#: in the low bits of the mantissa.
LIMIT: Final = 2.0**51

_FLOATS: Final = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
_LIMITS: Final = {torch.int64: LIMIT, torch.int32: 2.0**30}

if NATIVE:
    _native = importlib.import_module("edt_hvd._native")  # not `from edt_hvd`, which imports this module

    _NATIVE_ACCUMULATE: Final = {
        (getattr(torch, gradient), getattr(torch, total)): kernel
        for (gradient, total), kernel in _native.accumulate.items()
    }
    _NATIVE_TO_FLOAT: Final = {
        (getattr(torch, total), getattr(torch, out)): kernel
        for (total, out), kernel in _native.to_float.items()
    }


def accumulate(gradient: Tensor, factor: float, total: Tensor, limit: float) -> float:
    """Add ``round(gradient * factor)``, halves to even, to ``total`` in place.

    The product is rounded once, to float64. Elements whose product is not below ``limit`` in size, infinities
    and NaN among them, are left out: ``total`` stays as it is there. It is for the caller to see whether
    there are any: since rounding is monotone, that is so exactly if ``largest * factor >= limit``, with the
    ``largest`` that is returned. Additions wrap in two's complement, so sums stay exact modulo 2**32 or
    2**64; the caller bounds the number of addends.

    Args:
        gradient: float16, bfloat16, float32 or float64, shape ``(n,)``, contiguous, on the CPU.
        factor: Positive and finite; the integers of ``total`` count in units of ``1 / factor``.
        total: int32 or int64, shape ``(n,)``, contiguous, on the CPU.
        limit: A power of two from 1 to ``LIMIT``, or to 2**30 when ``total`` is int32.

    Returns:
        The largest ``|gradient|``, not multiplied; ``inf`` when an element is infinite or NaN, 0 when n is 0.

    Raises:
        TypeError: An argument is no tensor or has another dtype.
        ValueError: A shape, the memory layout, the device, the factor or the limit is not as described.
    """
    check_sum(gradient, factor, total, limit)
    if not gradient.is_cpu:
        raise ValueError(
            f"gradient and total are on {gradient.device}, and this function adds on the CPU: "
            "move them there, or use edt_hvd.reduction.fixed_point.cuda.accumulate"
        )
    if not NATIVE:
        return accumulate_reference(gradient, factor, total, limit)
    kernel = _NATIVE_ACCUMULATE[gradient.dtype, total.dtype]
    threads = torch.get_num_threads()
    largest: float = kernel(gradient.data_ptr(), factor, total.data_ptr(), limit, gradient.numel(), threads)
    return largest


def accumulate_reference(gradient: Tensor, factor: float, total: Tensor, limit: float) -> float:
    """Do what :func:`accumulate` does, in torch operations on any device; its arguments are not checked."""
    product = gradient.double() * factor
    kept = torch.where(product.abs() < limit, product, 0.0)
    total += kept.round().to(total.dtype)
    largest = gradient.abs().max().item() if gradient.numel() else 0.0
    return largest if largest < math.inf else math.inf  # a NaN is below nothing


def to_float(total: Tensor, scale: float, out: Tensor) -> None:
    """Write ``total * scale`` to ``out``.

    The integer is rounded to float64 and multiplied there; the product is rounded to float32 if ``out`` is
    narrower than float64, and then to float16 or bfloat16 if ``out`` is. Each rounding is to nearest, halves
    to even, infinity beyond the largest number.

    Args:
        total: int32 or int64, shape ``(n,)``, contiguous.
        scale: A positive power of two: the unit that ``total`` counts in.
        out: float16, bfloat16, float32 or float64, shape ``(n,)``, contiguous, on the device of ``total``.

    Raises:
        TypeError: An argument is no tensor or has another dtype.
        ValueError: A shape, the memory layout, the device or the scale is not as described.
    """
    check_reading(total, scale, out)
    if not (NATIVE and out.is_cpu):
        to_float_reference(total, scale, out)
        return
    kernel = _NATIVE_TO_FLOAT[total.dtype, out.dtype]
    kernel(total.data_ptr(), scale, out.data_ptr(), out.numel(), torch.get_num_threads())


def to_float_reference(total: Tensor, scale: float, out: Tensor) -> None:
    """Do what :func:`to_float` does, in torch operations on any device; its arguments are not checked."""
    product = total.double() * scale
    out.copy_(product if out.dtype == torch.float64 else product.float())


def check_reading(total: Any, scale: float, out: Any) -> None:
    """Raise what :func:`to_float` raises for arguments that do not fit, on any device."""
    _check_tensor("total", total, _LIMITS)
    _check_tensor("out", out, _FLOATS)
    _check_pair("out", out, total)
    if math.frexp(scale)[0] != 0.5:
        raise ValueError(f"scale must be a positive power of two, not {scale!r}: use 2.0**k")


def check_sum(gradient: Any, factor: float, total: Any, limit: float) -> None:
    """Raise what :func:`accumulate` raises for arguments that do not fit, on any device."""
    _check_tensor("gradient", gradient, _FLOATS)
    _check_tensor("total", total, _LIMITS)
    _check_pair("gradient", gradient, total)
    if not 0.0 < factor < math.inf:
        raise ValueError(f"factor must be positive and finite, not {factor!r}")
    if not 1.0 <= limit <= _LIMITS[total.dtype] or math.frexp(limit)[0] != 0.5:
        largest = int(math.log2(_LIMITS[total.dtype]))
        raise ValueError(
            f"limit must be a power of two from 1 to 2**{largest} for totals of {_name(total.dtype)}, "
            f"not {limit!r}"
        )


def _check_tensor(name: str, tensor: Any, dtypes: Any) -> None:
    if not isinstance(tensor, Tensor) or tensor.dtype not in dtypes:
        found = _name(tensor.dtype) if isinstance(tensor, Tensor) else type(tensor).__name__
        allowed = ", ".join(sorted(_name(dtype) for dtype in dtypes))
        raise TypeError(f"{name} must be a tensor of one of {allowed}, not {found}: convert it first")
    if tensor.dim() != 1 or not tensor.is_contiguous():
        raise ValueError(
            f"{name} must be one-dimensional and contiguous, not of shape {tuple(tensor.shape)} with strides "
            f"{tensor.stride()}: pass {name}.view(-1) of a contiguous tensor"
        )


def _check_pair(name: str, tensor: Tensor, total: Tensor) -> None:
    if tensor.numel() != total.numel():
        raise ValueError(
            f"{name} has {tensor.numel()} values, total {total.numel()}: they must be equal in length"
        )
    if tensor.device != total.device:
        raise ValueError(f"{name} is on {tensor.device}, total on {total.device}: move one to the other")


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
