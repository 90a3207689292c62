"""Putting the contents of a copy into an object that others refer to.

Values are saved as copies. A script may use such an object by a name of its own, beside the one that it is
saved by; so the object itself stays where that is possible, and gets the contents of the copy.
"""

import random
from collections import deque
from typing import Any

import numpy as np
import torch


def refilled(own: Any, new: Any) -> Any:
    """`own` with the contents of `new`, where its type allows that; else `new`.

    Args:
        own: the object that the state has.
        new: a copy that nobody else uses. What it contains is not copied again.
    """
    if type(own) is not type(new) or own is new:
        return new
    if isinstance(own, torch.Tensor):
        return _refilled_tensor(own, new)
    if isinstance(own, np.ndarray):
        return _refilled_array(own, new)
    if isinstance(own, torch.Generator):
        own.set_state(new.get_state())
    elif isinstance(own, np.random.Generator):
        own.bit_generator.state = new.bit_generator.state
    elif isinstance(own, random.Random):
        own.setstate(new.getstate())
    elif isinstance(own, list | bytearray):
        own[:] = new
    elif isinstance(own, dict | set):
        own.clear()
        own.update(new)
    elif isinstance(own, deque):
        own.clear()
        own.extend(new)
    elif not has_attributes_alone(own):
        return new
    _refill_attributes(own, new)
    return own


def is_shareable(value: Any) -> bool:
    """Whether it has contents of its own, which whoever else refers to it sees change."""
    containers = (list, dict, set, deque, bytearray, np.ndarray, torch.Tensor)
    return isinstance(value, containers) or has_attributes_alone(value)


def has_attributes_alone(value: Any) -> bool:
    """Whether all that it holds are its attributes: no class below its own has storage of another kind."""
    kind: Any = type(value)
    return (
        kind.__new__ is object.__new__
        and kind.__reduce_ex__ is object.__reduce_ex__
        and kind.__reduce__ is object.__reduce__
    )


def _refill_attributes(own: Any, new: Any) -> None:
    state = object.__getstate__(new)
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if hasattr(own, "__dict__"):
        own.__dict__.clear()
        own.__dict__.update(attributes or {})
    for name, item in (slots or {}).items():
        object.__setattr__(own, name, item)


def _refilled_tensor(own: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    if own.shape != new.shape or own.dtype != new.dtype or own.layout != new.layout:
        return new
    with torch.no_grad():
        own.copy_(new)
    return own


def _refilled_array(own: Any, new: Any) -> Any:
    if own.shape != new.shape or own.dtype != new.dtype or not own.flags.writeable:
        return new
    own[...] = new
    return own
