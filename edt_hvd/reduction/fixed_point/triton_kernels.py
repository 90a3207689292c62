"""The kernels of `cuda`, in a module of its own: importing it imports Triton."""

import torch
import triton
import triton.language as tl

#: Whether kernels run in Triton's interpreter (TRITON_INTERPRET=1): on CPU tensors, for tests without a GPU.
INTERPRETED: bool = triton.knobs.runtime.interpret

_MAGIC = tl.constexpr(1.5 * 2.0**52)
_MAGIC_BITS = tl.constexpr(0x4338000000000000)
_SIZE_MASK = tl.constexpr(0x7FFFFFFFFFFFFFFF)
_INFINITY_BITS = tl.constexpr(0x7FF0000000000000)


@triton.jit(do_not_specialize=["factor_bits"])  # type: ignore[untyped-decorator]  # Triton is not annotated
def accumulate(  # type: ignore[no-untyped-def]  # what it is compiled for follows from the arguments
    gradient,
    factor_bits,
    total,
    limit,
    largest_bits,
    n,
    BLOCK: tl.constexpr,  # noqa: N803
):
    """Add one block's products and take its largest size into ``largest_bits``.

    Triton would pass a float as float32, so the factor comes as the bits of a float64; the limit is a power
    of two and loses nothing. The launcher must not fuse multiplication and addition.
    """
    factor = factor_bits.to(tl.int64).to(tl.float64, bitcast=True)
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    value = tl.load(gradient + index, mask=inside, other=0.0).to(tl.float64)
    product = value * factor
    # Below 2**51, the sum has the rounded integer in the low bits of its mantissa.
    rounded = (product + _MAGIC).to(tl.int64, bitcast=True) - _MAGIC_BITS
    # As the mask of the accesses below, the comparison would keep them from being vectorized.
    addend = tl.where(tl.abs(product) < limit, rounded, 0)
    before = tl.load(total + index, mask=inside, other=0)
    tl.store(total + index, before + addend.to(before.dtype), mask=inside)
    # Without the sign, a float's bits order as its size does: infinity above the finite, NaN above infinity.
    size_bits = value.to(tl.int64, bitcast=True) & _SIZE_MASK
    tl.atomic_max(largest_bits, tl.minimum(tl.max(size_bits, axis=0), _INFINITY_BITS))


@triton.jit  # type: ignore[untyped-decorator]
def accumulate_parts(  # type: ignore[no-untyped-def]
    table,
    blocks,
    total,
    largest_bits,
    TYPE: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr,  # noqa: N803
):
    """Do what `accumulate` does for one block of one of several parts of ``total``.

    ``table`` has a row for each part: the address of its gradient, where it begins in ``total``, its length,
    and the bits of its factor and limit. ``blocks`` has the part of each program, and the block in it.
    """
    part = tl.load(blocks + 2 * tl.program_id(0))
    row = table + 5 * part
    gradient = tl.load(row).to(tl.pointer_type(TYPE))
    start = tl.load(row + 1)
    length = tl.load(row + 2)
    factor = tl.load(row + 3).to(tl.float64, bitcast=True)
    limit = tl.load(row + 4).to(tl.float64, bitcast=True)
    index = tl.load(blocks + 2 * tl.program_id(0) + 1) * BLOCK + tl.arange(0, BLOCK)
    inside = index < length
    value = tl.load(gradient + index, mask=inside, other=0.0).to(tl.float64)
    product = value * factor
    rounded = (product + _MAGIC).to(tl.int64, bitcast=True) - _MAGIC_BITS
    addend = tl.where(tl.abs(product) < limit, rounded, 0)
    before = tl.load(total + start + index, mask=inside, other=0)
    tl.store(total + start + index, before + addend.to(before.dtype), mask=inside)
    size_bits = value.to(tl.int64, bitcast=True) & _SIZE_MASK
    tl.atomic_max(largest_bits + part, tl.minimum(tl.max(size_bits, axis=0), _INFINITY_BITS))


@triton.jit  # type: ignore[untyped-decorator]
def to_float_parts(table, blocks, total, out, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """Do what `to_float` does for one block of one of several parts.

    A row of ``table`` has where the part begins, its length, and the bits of its scale.
    """
    row = table + 3 * tl.load(blocks + 2 * tl.program_id(0))
    start = tl.load(row)
    length = tl.load(row + 1)
    scale = tl.load(row + 2).to(tl.float64, bitcast=True)
    index = tl.load(blocks + 2 * tl.program_id(0) + 1) * BLOCK + tl.arange(0, BLOCK)
    inside = index < length
    product = tl.load(total + start + index, mask=inside, other=0).to(tl.float64) * scale
    if out.dtype.element_ty != tl.float64:
        product = product.to(tl.float32)
    tl.store(out + start + index, product.to(out.dtype.element_ty), mask=inside)


TYPES = {
    torch.float16: tl.float16,
    torch.bfloat16: tl.bfloat16,
    torch.float32: tl.float32,
    torch.float64: tl.float64,
}
"""What an address points to."""


@triton.jit(do_not_specialize=["scale_bits"])  # type: ignore[untyped-decorator]
def to_float(total, scale_bits, out, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: N803
    """Write one block of ``total * scale``; the scale comes as the bits of a float64."""
    scale = scale_bits.to(tl.int64).to(tl.float64, bitcast=True)
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    product = tl.load(total + index, mask=inside, other=0).to(tl.float64) * scale
    if out.dtype.element_ty != tl.float64:
        product = product.to(tl.float32)
    tl.store(out + index, product.to(out.dtype.element_ty), mask=inside)
