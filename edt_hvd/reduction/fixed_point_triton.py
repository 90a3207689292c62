"""The kernels of `fixed_point_cuda`, in a module of its own: importing it imports Triton."""

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
