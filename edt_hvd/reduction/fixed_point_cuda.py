"""Gradients in fixed point on a GPU: fused Triton kernels, with the bits of `fixed_point`.

Triton comes with torch for CUDA and is imported by the first call.
"""

import struct

import torch
from torch import Tensor

from edt_hvd.reduction import fixed_point

_BLOCK = 1024


def accumulate(gradient: Tensor, factor: float, total: Tensor, limit: float, largest: Tensor) -> None:
    """Do what :func:`edt_hvd.reduction.fixed_point.accumulate` does, without waiting for the device.

    In place of a returned number, ``largest`` becomes the maximum of itself and the largest ``|gradient|``,
    ``inf`` when an element is infinite or NaN. The kernel is put on the current stream.

    Args:
        gradient: float16, bfloat16, float32 or float64, shape ``(n,)``, contiguous, on a CUDA device.
        factor: Positive and finite.
        total: int32 or int64, shape ``(n,)``, contiguous, on the same device.
        limit: A power of two from 1 to ``fixed_point.LIMIT``, or to 2**30 when ``total`` is int32.
        largest: float64, one element, not negative, on the same device.

    Raises:
        ModuleNotFoundError: Triton is missing.
        TypeError: An argument is no tensor or has another dtype.
        ValueError: A shape, the memory layout, the device, the factor or the limit is not as described.
    """
    fixed_point.check_sum(gradient, factor, total, limit)
    _launch("accumulate", total, gradient, _bits(factor), total, limit, largest.view(torch.int64))


def to_float(total: Tensor, scale: float, out: Tensor) -> None:
    """Do what :func:`edt_hvd.reduction.fixed_point.to_float` does, in one pass on the current stream.

    Args:
        total: int32 or int64, shape ``(n,)``, contiguous, on a CUDA device.
        scale: A positive power of two: the unit that ``total`` counts in.
        out: float16, bfloat16, float32 or float64, shape ``(n,)``, contiguous, on the same device.

    Raises:
        ModuleNotFoundError: Triton is missing.
        TypeError: An argument is no tensor or has another dtype.
        ValueError: A shape, the memory layout, the device or the scale is not as described.
    """
    fixed_point.check_reading(total, scale, out)
    _launch("to_float", total, total, _bits(scale), out)


def _launch(name: str, total: Tensor, *arguments: Tensor | float) -> None:
    """Put the kernel of that name on the current stream, for all elements of ``total``."""
    from edt_hvd.reduction import fixed_point_triton

    if not (total.is_cuda or fixed_point_triton.INTERPRETED):
        raise ValueError(
            f"total is on {total.device}, and this function computes on a GPU: move all tensors there, "
            f"or use edt_hvd.reduction.fixed_point.{name}"
        )
    n = total.numel()
    if n == 0:
        return
    kernel = getattr(fixed_point_triton, name)
    with torch.cuda.device(total.get_device()):
        kernel[(-(-n // _BLOCK),)](*arguments, n, BLOCK=_BLOCK, enable_fp_fusion=False)


def _bits(value: float) -> int:
    """The bits of a float64, for a kernel: Triton would pass a float as float32."""
    (bits,) = struct.unpack("q", struct.pack("d", value))
    return int(bits)
