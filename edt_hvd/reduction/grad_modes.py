"""Tensors that outlive the grad mode in which a script happens to be when they are made."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def ordinary_tensors() -> Iterator[None]:
    """Make ordinary tensors in here, also inside ``torch.inference_mode()``, and record no graph.

    What a validation loop in inference mode allocates is written to by later training steps, which torch
    refuses for the tensors of that mode.
    """
    with torch.inference_mode(False), torch.no_grad():  # the first alone would switch gradients on
        yield


def overwrite(tensor: torch.Tensor, values: torch.Tensor) -> None:
    """Copy `values` into a tensor, also one that was made in inference mode."""
    with torch.inference_mode() if tensor.is_inference() else torch.no_grad():
        tensor.copy_(values)


def version_of(tensor: torch.Tensor) -> int:
    """How many writes torch has counted; it counts none to what was made in inference mode."""
    return -1 if tensor.is_inference() else tensor._version
