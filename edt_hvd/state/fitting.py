"""Whether a saved state is one of the objects it is about to be loaded into."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from edt_hvd.errors import StateError
from edt_hvd.state.torch_states import Caches, full_state

SHOWN = 4
"""Differences that a message names."""


def check_fit(values: Mapping[str, Any], saved: Mapping[str, Any]) -> None:
    """Compare the names of a state and the shapes of its modules' tensors with a saved tree.

    Args:
        values: the objects and plain values of the state, by name.
        saved: their states, by name. A name with a dot belongs to the object before it, and may be missing.

    Raises:
        StateError: it is of other objects.
    """
    found = list(_differences(values, saved))
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        raise StateError("; ".join(found[:SHOWN]) + more)


def _differences(values: Mapping[str, Any], saved: Mapping[str, Any]) -> Iterator[str]:
    for name in values.keys() - saved.keys():
        yield f"it has no {name!r}"
    for name in saved.keys() - values.keys():
        if name.partition(".")[0] not in values:
            yield f"its {name!r} is not in this state"
    for name, value in values.items():
        if isinstance(value, torch.nn.Module) and name in saved:
            yield from _of_module(name, value, saved[name])


def _of_module(name: str, module: torch.nn.Module, saved: Any) -> Iterator[str]:
    if not isinstance(saved, Mapping):
        yield f"its {name!r} is a {type(saved).__name__}, here it is a module"
        return
    own = full_state(module)
    for key in own:
        here, there = _form(own[key]), _form(saved.get(key))
        if here != there:
            yield f"its {name}.{key} is {there}, here it is {here}"
    for key in saved.keys() - own.keys() - Caches(module).state_dict().keys():
        yield f"its {name}.{key} is not in this module"


def _form(value: Any) -> str:
    if value is None:
        return "missing"
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    return f"a {type(value).__name__}"
