"""Plain values of a state: everything without ``state_dict`` and ``load_state_dict``; see `refilling`."""

from collections import deque
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import torch

from edt_hvd.refilling import has_attributes_alone
from edt_hvd.state.state_dicts import is_stateful


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
    elif has_attributes_alone(value):
        yield from ((f".{name}", part) for name, part in getattr(value, "__dict__", {}).items())
