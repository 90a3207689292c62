"""Whether all executors step with the same options, such as the learning rate: callbacks set them in each."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

import edt_hvd
from edt_hvd.wmla.errors import WmlaError

REST = "the other options"
"""Stands for those that the optimizer was not made with: which they are may differ among executors."""


def check_options(optimizer: torch.optim.Optimizer, when: str) -> None:
    """Compare the options of all parameter groups with the other executors'. A collective.

    Args:
        optimizer: what is stepped.
        when: the last chance to change them, for the message.

    Raises:
        WmlaError: in every executor, as soon as one has others.
    """
    options = options_of(optimizer)
    names = differing(edt_hvd.gather(options))
    if names:
        here = ", ".join(f"{name} is {options[name]!r}" for name in names)
        raise WmlaError(
            f"after {when} the executors' optimizers have different options: here {here}. What callbacks "
            "count with has to reach executors that join later: keep it in attributes of the callback that "
            "can be pickled, or give it state_dict and load_state_dict"
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


def differing(all_options: Sequence[Mapping[str, Any]]) -> list[str]:
    """Which of the options, the same names in all executors, have other values in some of them."""
    first, *others = all_options
    return [name for name in first if any(repr(other[name]) != repr(first[name]) for other in others)]


def _comparable(value: Any) -> Any:
    """A number, however it is kept; of objects only what they are: their text may have their address."""
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_comparable(each) for each in value]
    if isinstance(value, bool | int | float | complex | str | None):
        return value
    return type(value).__qualname__
