"""Tensors of all the bits there are, for the tests of the kernels."""

import torch
from torch import Tensor

BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Integers of as many bytes as a float has."""


def random_ints(length: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    ends = torch.iinfo(dtype)
    return torch.randint(ends.min, ends.max, (length,), dtype=dtype, generator=generator)


def random_bits(length: int, dtype: torch.dtype, seed: int = 0) -> Tensor:
    """Floats of all sizes: subnormals, infinities and NaN among them."""
    return random_ints(length, BITS[dtype.itemsize], seed).view(dtype)
