"""Whether all executors step with the same options, such as the learning rate: callbacks set them in each."""

import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import edt_hvd
from edt_hvd.wmla.errors import WmlaError

REST = "the other options"
"""Stands for those that the optimizer was not made with: which they are may differ among executors."""

BITS = 32
"""Of the checksum of an option."""


def check_options(optimizer: torch.optim.Optimizer, when: str) -> None:
    """Compare the options of all parameter groups with the other executors'. A collective.

    Args:
        optimizer: what is stepped.
        when: the last chance to change them, for the message.

    Raises:
        WmlaError: in every executor, as soon as one has others.
    """
    if edt_hvd.size() == 1:
        return
    options = options_of(optimizer)
    names = differing(list(options), edt_hvd.average(checksums(options)))
    if names:
        here = ", ".join(f"{name} is {options[name]!r}" for name in names)
        raise WmlaError(
            f"after {when} the executors' optimizers have different options: here {here}. What callbacks "
            "count with has to reach executors that join later: keep it in attributes of the callback that "
            "are plain values or tensors, or give it state_dict and load_state_dict"
        )


def options_of(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """For each option that the optimizer was made with its value in every group; and all others as one."""
    groups = optimizer.param_groups
    options: dict[str, Any] = {
        name: [_comparable(group.get(name)) for group in groups] for name in optimizer.defaults
    }
    rest = [
        {
            name: _comparable(value)
            for name, value in sorted(group.items())
            if name not in (*options, "params")
        }
        for group in groups
    ]
    return options | {REST: rest}


def checksums(options: dict[str, Any]) -> NDArray[np.float64]:
    """The bits of a checksum of every option, as numbers of shape [options, BITS]."""
    sums = [zlib.crc32(repr(value).encode()) for value in options.values()]
    return np.array([[each >> bit & 1 for bit in range(BITS)] for each in sums], dtype=np.float64)


def differing(names: Sequence[str], means: NDArray[np.float64]) -> list[str]:
    """Which options are not the same everywhere.

    Args:
        names: of all options.
        means: of the executors' `checksums`: a bit that all have in common is still 0 or 1.
    """
    return [name for name, bits in zip(names, means, strict=True) if not np.isin(bits, (0.0, 1.0)).all()]


def _comparable(value: Any) -> Any:
    """A number, however it is kept; of objects only what they are: their text may have their address."""
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_comparable(each) for each in value]
    if isinstance(value, bool | int | float | complex | str | None):
        return value
    return type(value).__qualname__
