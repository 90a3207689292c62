"""Checks that a saved state fits the objects into which it is loaded."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any

import torch
from torch.nn.modules.module import _EXTRA_STATE_KEY_SUFFIX
from torch.utils import _pytree as pytree

from edt_hvd.errors import StateError
from edt_hvd.refilling import is_shareable
from edt_hvd.state.plain_values import foreign_parts
from edt_hvd.state.state_dicts import NonPersistentBuffers, full_state, groups_of, is_stateful
from edt_hvd.state.structure import SUFFIX, Parts, differences, form_of, structure_of

SHOWN = 4
"""Differences that a message names."""


def misfits(values: Mapping[str, Any], saved: Mapping[str, Any]) -> str:
    """Compare the names of a state and what its objects are made of with a saved tree.

    Args:
        values: the objects and plain values of the state, by name.
        saved: their states, by name. A name with a dot belongs to the object before it, and may be missing.

    Returns:
        The differences in words; empty if all fits.
    """
    return _listed(list(dict.fromkeys(_misfits(values, saved))))


def _listed(found: list[str]) -> str:
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return "; ".join(found[:SHOWN]) + more


def _misfits(values: Mapping[str, Any], saved: Mapping[str, Any]) -> Iterator[str]:
    for name in values.keys() - saved.keys():
        yield f"it has no {name!r}"
    for name in saved.keys() - values.keys():
        if name.partition(".")[0] not in values:
            yield f"its {name!r} is not in this state"
    for name, value in values.items():
        if isinstance(value, torch.nn.Module) and name in saved:
            yield from _of_module(name, value, saved[name])
    there = {key.removesuffix(SUFFIX): parts for key, parts in saved.items() if key.endswith(SUFFIX)}
    if there:  # else it is an older checkpoint
        for part, theirs, ours in differences(there, structure_of(values)):
            yield f"its {part} is {theirs}, here it is {ours}"


def _of_module(name: str, module: torch.nn.Module, saved: Any) -> Iterator[str]:
    if not isinstance(saved, Mapping):
        yield f"its {name!r} is a {type(saved).__name__}, here it is a module"
        return
    own = full_state(module)
    for key in (*own, *(saved.keys() - own.keys() - NonPersistentBuffers(module).state_dict().keys())):
        here, there = form_of(own.get(key)), form_of(saved.get(key))
        if here != there and not (key.endswith(_EXTRA_STATE_KEY_SUFFIX) and key in own and key in saved):
            yield f"its {name}.{key} is {there}, here it is {here}"


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


def check_contents(values: Mapping[str, Any]) -> None:
    """Check that plain values contain nothing trained, nothing with a state of its own, and no other value.

    Raises:
        StateError: one does. Copies of it would take its place after a resize.
    """
    others = {id(value): name for name, value in values.items() if is_shareable(value)}
    for name, value in values.items():
        if not is_stateful(value):
            for label, part in foreign_parts(value, f"state.{name}", others.keys()):
                if id(part) in others and not is_stateful(part):
                    raise StateError(
                        f"{label} is state.{others[id(part)]}: after a resize they would be two objects, "
                        "which the script takes for one. Keep one of the two values out of the state, or the "
                        "reference out of the object"
                    )
                raise StateError(
                    f"{label} is a {type(part).__name__}, inside a plain value: after a resize a copy would "
                    "take its place, which the rest of the script does not know. Give it a name of its own "
                    "in the TorchState (several modules: an nn.ModuleList), or keep it out of it"
                )


def check_coverage(values: Mapping[str, Any]) -> None:
    """Check that all that the optimizers of a state train is in the ``state_dict`` of some value of it.

    Raises:
        StateError: something is not: workers that join would train on with what their script has made.
    """
    optimizers = {name: value for name, value in values.items() if groups_of(value)}
    held = set(chain.from_iterable(map(_held, (v for name, v in values.items() if name not in optimizers))))
    labels = {
        id(parameter): f"{name}.{key}"
        for name, value in values.items()
        if isinstance(value, torch.nn.Module)
        for key, parameter in value.named_parameters(remove_duplicate=False)
    }
    missing = [
        labels.get(id(parameter), f"parameter {index} of group {number} of {name}, {form_of(parameter)}")
        for name, optimizer in optimizers.items()
        for number, group in enumerate(groups_of(optimizer))
        for index, parameter in enumerate(group["params"])
        if parameter.requires_grad and held.isdisjoint((id(parameter), _memory(parameter)))
    ]
    if missing:
        raise StateError(
            f"the optimizers of the state train what no value of it has in its state_dict: {_listed(missing)}"
            "; put the modules that have these parameters into the TorchState, with all that is trained in "
            "their state_dict, or workers that join do not get them"
        )


def check_optimizer_states(values: Mapping[str, Any]) -> None:
    """Check that optimizers keep states of the parameters in their groups alone.

    Raises:
        StateError: of another one, too; torch's ``state_dict()`` raises a KeyError then.
    """
    for name, optimizer in values.items():
        own = {id(parameter) for group in groups_of(optimizer) for parameter in group["params"]}
        states = getattr(optimizer, "state", None)
        if not own or not isinstance(states, Mapping):
            continue
        stale = [form_of(each) for each in states if isinstance(each, torch.Tensor) and id(each) not in own]
        if stale:
            raise StateError(
                f"{name} has the states of parameters that are in none of its groups any more: "
                f"{_listed(stale)}. Where a parameter is replaced in a group, move its state, too: "
                f"{name}.state[new] = {name}.state.pop(old); or drop it: {name}.state.pop(old, None)"
            )


def _held(value: Any) -> Iterator[Any]:
    """What the state of a value holds: parameters by ``id``, tensors by where they are."""
    if isinstance(value, torch.Tensor):
        yield id(value)
    elif is_stateful(value):
        saved = value.state_dict()
        if isinstance(value, torch.nn.Module):
            yield from (id(each) for key, each in value.named_parameters() if key in saved)
        yield from (_memory(leaf) for leaf in pytree.tree_leaves(saved) if isinstance(leaf, torch.Tensor))


def _memory(tensor: torch.Tensor) -> Any:
    return tensor.device, tensor.data_ptr() if tensor.layout == torch.strided and tensor.numel() else None


def check_unchanged(then: Mapping[str, Parts], now: Mapping[str, Parts]) -> None:
    """Check that objects are made of the same parts as when the elastic function was entered.

    Raises:
        StateError: a worker that joins would not have them.
    """
    found = [f"{part} was {before}, now it is {after}" for part, before, after in differences(then, now)]
    if found:
        raise StateError(
            f"the state's objects have changed since the elastic function was entered: {_listed(found)}. "
            "Workers that join run the script from its beginning and could not load them: make the change "
            "there, too, in a function that is passed as TorchState(..., prepare=function)"
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
                "TorchState, on every worker, and let a plain value say whether they are in use; or make "
                "them in a function that is passed as TorchState(..., prepare=function), too"
            )
