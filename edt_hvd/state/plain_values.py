"""Plain values of a state: everything without ``state_dict`` and ``load_state_dict``.

They are saved as copies. A script may use such an object by a name of its own, beside the state's; so the
object itself stays where that is possible, and gets the contents of the copy.
"""

import random
from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
import torch

from edt_hvd.state.state_dicts import is_stateful


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
    elif not _is_plain_object(own):
        return new
    _refill_attributes(own, new)
    return own


def is_shareable(value: Any) -> bool:
    """Whether it has contents of its own, which whoever else refers to it sees change."""
    containers = (list, dict, set, deque, bytearray, np.ndarray, torch.Tensor)
    return isinstance(value, containers) or _is_plain_object(value)


def foreign_parts(
    value: Any, label: str, others: AbstractSet[int], seen: set[int] | None = None
) -> Iterator[tuple[str, Any]]:
    """What a plain value contains that is saved in another way or place, and would be lost in a copy.

    Args:
        value: the plain value.
        label: what messages call it.
        others: ids of values of the state.
        seen: ids of what was looked at.

    Yields:
        Objects with ``state_dict``, tensors that are trained, and `others`: what each is called, and itself.
    """
    seen = set() if seen is None else seen
    for name, part in _parts(value):
        if id(part) in seen:
            continue
        seen.add(id(part))
        is_trained = isinstance(part, torch.Tensor) and part.is_leaf and part.requires_grad
        if is_stateful(part) or is_trained or id(part) in others:
            yield f"{label}{name}", part
        else:
            yield from foreign_parts(part, f"{label}{name}", others, seen)


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in value.items())
    elif isinstance(value, list | tuple | deque):
        yield from ((f"[{number}]", part) for number, part in enumerate(value))
    elif isinstance(value, AbstractSet):
        yield from (("", part) for part in value)
    elif _is_plain_object(value):
        yield from ((f".{name}", part) for name, part in getattr(value, "__dict__", {}).items())


def _is_plain_object(value: Any) -> bool:
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
