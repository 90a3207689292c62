"""Changing an object in place, so that all who have it see it."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from edt_hvd.wmla.handing.forms import MAPPINGS, attributes, layers, put, settings, tensors

GROWING: Sequence[tuple[Any, Callable[..., None]]] = (
    (list, list.extend),
    (deque, deque.extend),
    (set, set.update),
)
"""Containers, and what puts more into them."""


def renew(present: Any, value: Any) -> bool:
    """Make an object like another one.

    Args:
        present: what `forms.form` sees into.
        value: what it is to be like.

    Returns:
        Whether that was possible.
    """
    if type(present) is not type(value):
        return False
    if isinstance(value, np.ndarray):
        return _renew_array(present, value)
    if isinstance(value, torch.Tensor):
        return _renew_tensor(present, value)
    if isinstance(value, torch.nn.Module):
        return _renew_module(present, value)
    if isinstance(value, tuple | frozenset):
        return False
    is_container = _renew_contents(present, value)
    before, after = attributes(present), attributes(value)
    for name in before.keys() - after.keys():
        object.__delattr__(present, name)
    for name, each in after.items():
        put(present, name, each)
    return is_container or bool(before or after)


def _renew_contents(present: Any, value: Any) -> bool:
    """As the built-in containers do it, whatever the script's class makes of it."""
    for mapping in MAPPINGS:
        if issubclass(type(value), mapping):
            mapping.clear(present)
            for key, each in mapping.items(value):
                mapping.__setitem__(present, key, each)
            return True
    for container, add in GROWING:
        if issubclass(type(value), container):
            container.clear(present)
            add(present, container.__iter__(value))
            return True
    return False


def _renew_array(present: "np.ndarray[Any, Any]", value: "np.ndarray[Any, Any]") -> bool:
    if (present.shape, present.dtype) != (value.shape, value.dtype) or not present.flags.writeable:
        return False
    present[...] = value
    return True


def _renew_tensor(present: torch.Tensor, value: torch.Tensor) -> bool:
    if (present.shape, present.dtype) == (value.shape, value.dtype):
        present.detach().copy_(value.detach())  # views of it see that
    else:
        present.data = value.data
    present.requires_grad_(value.requires_grad)
    return True


def _renew_module(present: torch.nn.Module, value: torch.nn.Module) -> bool:
    """Tensor by tensor where the layers are the same, so that those who have one of them see it."""
    ours, others = layers(present), layers(value)
    if list(map(_shapes, ours)) != list(map(_shapes, others)):
        vars(present).clear()
        vars(present).update(vars(value))
        return True
    for mine, theirs in zip(ours, others, strict=True):
        for name, tensor in tensors(theirs).items():
            if tensor is not None:
                _renew_tensor(tensors(mine)[name], tensor)
        for name, each in settings(theirs).items():
            if not renew(vars(mine).get(name), each):
                vars(mine)[name] = each
    return True


def _shapes(layer: torch.nn.Module) -> list[Any]:
    """What two layers that are alike have in common."""
    is_known = {n: t is not None and not torch.nn.parameter.is_lazy(t) for n, t in tensors(layer).items()}
    shapes = [(name, t.shape if is_known[name] else None) for name, t in tensors(layer).items()]
    return [type(layer), *vars(layer)["_modules"], *shapes]
