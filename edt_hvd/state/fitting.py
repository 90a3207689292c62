"""Checks that a saved state fits the objects into which it is loaded."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

import torch

from edt_hvd.errors import StateError
from edt_hvd.state.state_dicts import Caches, full_state, is_stateful

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


def check_names(names: AbstractSet[str], reserved: AbstractSet[str]) -> None:
    """Check the names of a state's values.

    Raises:
        StateError: the state has attributes or methods of such names itself.
    """
    taken = ", ".join(sorted(names & reserved))
    if taken:
        public = ", ".join(sorted(name for name in reserved if not name.startswith("_")))
        raise StateError(
            f"no value of a TorchState can be called {taken}: the state has attributes or methods of such "
            f"names itself; choose others. Reserved are {public}, and some with a leading underscore"
        )


def check_kinds(values: Mapping[str, Any], had_state: Mapping[str, bool]) -> None:
    """Check that the values that had a `state_dict` when the state was made have one, and no others.

    Raises:
        StateError: a worker that joins could not load what was put into the state since.
    """
    for name, value in values.items():
        if is_stateful(value) != had_state[name]:
            then, now = ("had", "none") if had_state[name] else ("had no", "one")
            raise StateError(
                f"state.{name} {then} state_dict() when the state was made, and is a {type(value).__name__} "
                f"now, which has {now}: workers that join could not load it. Make such objects before the "
                "TorchState, on every worker, and let a plain value say whether they are in use"
            )
