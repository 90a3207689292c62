"""Gradients in fixed point on a GPU: fused Triton kernels, with the bits of `fixed_point`.

Triton comes with torch for CUDA and is imported by the first call.
"""

import functools
import struct
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from edt_hvd.reduction.fixed_point import arithmetic as fixed_point

_BLOCK = 1024


def accumulate(gradient: Tensor, factor: float, total: Tensor, limit: float, largest: Tensor) -> None:
    """Do what :func:`.arithmetic.accumulate` does, without waiting for the device.

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
    """Do what :func:`.arithmetic.to_float` does, in one pass on the current stream.

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


def accumulate_parts(
    gradients: Sequence[Tensor],
    factors: Sequence[float],
    total: Tensor,
    starts: Sequence[int],
    limits: Sequence[float],
    largest: Tensor,
) -> None:
    """Do what :func:`accumulate` does for several parts of ``total``, in one kernel.

    Args:
        gradients: of one type.
        factors: for each.
        total: as long as all parts, or longer.
        starts: where each part begins in ``total``; parts do not overlap.
        limits: for each.
        largest: float64, one element a part, not negative, on the same device.

    Raises:
        ModuleNotFoundError, TypeError, ValueError: as :func:`accumulate` does.
    """
    if len(gradients) == 1:
        part = total.narrow(0, starts[0], gradients[0].numel())
        accumulate(gradients[0], factors[0], part, limits[0], largest)
        return
    sizes = tuple(each.numel() for each in gradients)
    for gradient, factor, start, limit in zip(gradients, factors, starts, limits, strict=True):
        fixed_point.check_sum(gradient, factor, total.narrow(0, start, gradient.numel()), limit)
    addresses = [each.data_ptr() for each in gradients]
    table = zip(addresses, starts, sizes, map(_bits, factors), map(_bits, limits), strict=True)
    kind = _triton(total, "accumulate").TYPES[gradients[0].dtype]
    _launch_parts("accumulate_parts", list(table), sizes, total, largest.view(torch.int64), TYPE=kind)


def to_float_parts(total: Tensor, starts: Sequence[int], scales: Sequence[float], out: Tensor) -> None:
    """Do what :func:`to_float` does, in one kernel, with a scale of its own for each part.

    Args:
        total, out: as for :func:`to_float`.
        starts: where each part begins, in order; it ends where the next one begins.
        scales: for each.

    Raises:
        ModuleNotFoundError, TypeError, ValueError: as :func:`to_float` does.
    """
    for scale in scales:
        fixed_point.check_reading(total, scale, out)
    ends = [*starts[1:], total.numel()]
    sizes = tuple(end - start for start, end in zip(starts, ends, strict=True))
    table = zip(starts, sizes, map(_bits, scales), strict=True)
    _launch_parts("to_float_parts", list(table), sizes, total, out)


def _launch_parts(
    name: str,
    table: Sequence[Sequence[int]],
    sizes: tuple[int, ...],
    total: Tensor,
    other: Tensor,
    **constants: Any,
) -> None:
    """Put the kernel of that name on the current stream, for all elements of parts of these sizes."""
    module = _triton(total, name)
    blocks = _blocks(sizes, total.device)
    if not len(blocks):
        return
    rows = torch.tensor(table, dtype=torch.int64, device="cpu").to(total.device, non_blocking=True)
    with torch.cuda.device(total.get_device()):
        kernel = getattr(module, name)[(len(blocks),)]
        kernel(rows, blocks, total, other, **constants, BLOCK=_BLOCK, enable_fp_fusion=False)


@functools.lru_cache(maxsize=1024)
def _blocks(sizes: tuple[int, ...], device: torch.device) -> Tensor:
    """The part of each block, and its number in the part."""
    found = [(part, block) for part, size in enumerate(sizes) for block in range(-(-size // _BLOCK))]
    return torch.tensor(found, dtype=torch.int64, device="cpu").view(-1, 2).to(device)


def _triton(total: Tensor, name: str) -> Any:
    """The module with the kernels.

    Raises:
        ModuleNotFoundError: Triton is missing.
        ValueError: they do not run where ``total`` is.
    """
    from edt_hvd.reduction.fixed_point import triton_kernels as fixed_point_triton

    if not (total.is_cuda or fixed_point_triton.INTERPRETED):
        raise ValueError(
            f"total is on {total.device}, and this function computes on a GPU: move all tensors there, "
            f"or use edt_hvd.reduction.fixed_point.arithmetic.{name}"
        )
    return fixed_point_triton


def _launch(name: str, total: Tensor, *arguments: Tensor | float) -> None:
    """Put the kernel of that name on the current stream, for all elements of ``total``."""
    module = _triton(total, name)
    n = total.numel()
    if n == 0:
        return
    kernel = getattr(module, name)
    with torch.cuda.device(total.get_device()):
        kernel[(-(-n // _BLOCK),)](*arguments, n, BLOCK=_BLOCK, enable_fp_fusion=False)


def _bits(value: float) -> int:
    """The bits of a float64, for a kernel: Triton would pass a float as float32."""
    (bits,) = struct.unpack("q", struct.pack("d", value))
    return int(bits)
