"""The bits of tensors, to compare them by: floats compare 0 with -0 and nan otherwise."""

import torch

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Floating-point types that torch can compute with; 8-bit ones are for storage alone."""

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
"""By the size of an element."""

_FACTORS = (0x9E3779B97F4A7C1 | 1, 0xBF58476D1CE4E5B | 1)


def bits_of(tensor: torch.Tensor) -> torch.Tensor:
    """The elements' bits, as integers of their size, in the same memory; of a complex one, of its parts."""
    real = as_real(tensor.detach())
    return real.view(_INTEGERS[real.element_size()])


def as_real(tensor: torch.Tensor) -> torch.Tensor:
    """A complex tensor as a real one with a last dimension of 2, in the same memory unless it is a conjugate.

    Any other tensor is returned as it is.
    """
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def fingerprint(flat: torch.Tensor) -> int:
    """A number of 64 bits that two one-dimensional tensors of other bits hardly ever share.

    It is a sum modulo 2**64 of the elements' bits, each times a factor of its own, so that it is the same
    however the device groups it.
    """
    index = torch.arange(1, flat.numel() + 1, device=flat.device) * _FACTORS[0]
    return int((bits_of(flat) * ((index ^ (index >> 29)) * _FACTORS[1])).sum())
