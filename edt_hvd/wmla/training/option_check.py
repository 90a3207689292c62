"""Whether all executors step with the same options, such as the learning rate: callbacks set them in each."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

import edt_hvd
from edt_hvd.wmla.errors import WmlaError


def check_options(optimizer: torch.optim.Optimizer, when: str) -> None:
    """Compare the options of all parameter groups with the other executors'. A collective.

    Args:
        optimizer: what is stepped.
        when: the last chance to change them, for the message.

    Raises:
        WmlaError: in every executor, as soon as one has others.
    """
    options = options_of(optimizer)
    if names := differing(edt_hvd.gather(options)):
        here = ", ".join(f"{name} is {options.get(name, 'missing')}" for name in names)
        raise WmlaError(
            f"after {when} the executors' optimizers have different options: here {here}. What callbacks "
            "count with has to reach executors that join later: keep it in attributes of the callback that "
            "can be pickled, or give it state_dict and load_state_dict"
        )


def options_of(optimizer: torch.optim.Optimizer) -> dict[str, str]:
    """The text of each option in every group, however a number is kept; of an object its type."""
    names = dict.fromkeys(name for group in optimizer.param_groups for name in group if name != "params")
    return {name: repr([_plain(group.get(name)) for group in optimizer.param_groups]) for name in names}


def differing(all_options: Sequence[Mapping[str, str]]) -> list[str]:
    """The options that have other values in some executors, or are not there."""
    names = dict.fromkeys(name for options in all_options for name in options)
    return [name for name in names if len({options.get(name) for options in all_options}) > 1]


def _plain(value: Any) -> Any:
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, bool | int | float | complex | str | None) else type(value).__qualname__
