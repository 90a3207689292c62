"""What the objects of a state are made of: parameters, buffers, parameter groups, loaders' fixed options.

A newcomer runs the script from its beginning, so it has what the script makes there. The structure tells
whether that is what the others have by now.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from edt_hvd.data.loader import ElasticDataLoader
from edt_hvd.observing import Values
from edt_hvd.reduction import comparison
from edt_hvd.state import module_walk
from edt_hvd.state.state_dicts import groups_of, is_stateful

SUFFIX = ".structure"
"""Follows a value's name, in a saved tree."""

PREPARED = ".prepared"
"""Follows a plain value's name, in a saved tree: what it was at the commit to which the objects belong."""

Fingerprint = list[Any]

Parts = dict[str, str]
"""The form of each part of an object, by what messages call it."""


def form_of(value: Any) -> str:
    """The dtype and shape of a tensor, for messages; the type of anything else."""
    if value is None:
        return comparison.MISSING
    if isinstance(value, torch.Tensor):
        return comparison.form_of(value)
    return f"a {type(value).__name__}"


def structure_of(values: Values) -> dict[str, Parts]:
    """The parts of every value that has ``state_dict``, by the names of a state."""
    names: dict[torch.Tensor, str] = {}
    found: dict[str, Parts] = {}
    for name, value in values.items():
        if isinstance(value, torch.nn.Module):
            found[name] = dict(_of_module(name, value, names))
    for name, value in values.items():
        if name not in found and is_stateful(value):
            found[name] = dict(_of_object(name, value, names))
    return {name: found[name] for name in values if name in found}


def structure_tree(values: Values) -> dict[str, Any]:
    """The structure as a part of a saved tree."""
    return {f"{name}{SUFFIX}": parts for name, parts in structure_of(values).items()}


def differences(there: Mapping[str, Parts], here: Mapping[str, Parts]) -> Iterator[tuple[str, str, str]]:
    """The parts that differ: what they are called, their form there, and their form here."""
    for name in (*there, *(name for name in here if name not in there)):
        ours, theirs = here.get(name), there.get(name)
        if ours is None or theirs is None:
            forms = ["a plain value" if each is None else "an object" for each in (theirs, ours)]
            yield name, forms[0], forms[1]
            continue
        for part in (*theirs, *(part for part in ours if part not in theirs)):
            before, after = theirs.get(part, comparison.MISSING), ours.get(part, comparison.MISSING)
            if before != after:
                yield part, before, after


def fingerprint(values: Values) -> Fingerprint:
    """What the structure follows from, quick enough for every commit. While it is equal, so is the structure.

    Objects are compared by ``id``: keep them alive as long as the fingerprint is in use.
    """
    found: Fingerprint = []
    for name, value in values.items():
        if isinstance(value, torch.nn.Module):
            found += (name, id(value))
            module_walk.add_forms(value, found)
        elif isinstance(value, ElasticDataLoader):
            found += (name, id(value), value.fixed_state())
        elif is_stateful(value):
            groups = [tuple(map(id, group["params"])) for group in groups_of(value)]
            found += (name, id(value), groups)
    return found


def _of_module(
    name: str, module: torch.nn.Module, names: dict[torch.Tensor, str]
) -> Iterator[tuple[str, str]]:
    for key, parameter in module.named_parameters(remove_duplicate=False):
        label = f"{name}.{key}"
        first = names.setdefault(parameter, label)
        yield label, form_of(parameter) if first == label else f"the same as {first}"
    for key, buffer in module_walk.buffers_of(module, persistent=True).items():
        yield f"{name}.{key}", form_of(buffer)


def _of_object(name: str, value: Any, names: Mapping[torch.Tensor, str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, ElasticDataLoader):
        for option, setting in value.fixed_state().items():
            yield f"{option} of {name}", str(setting)
    for number, group in enumerate(groups_of(value)):
        yield f"group {number} of {name}", f"{len(group['params'])} parameters"
        for index, parameter in enumerate(group["params"]):
            yield (
                f"parameter {index} of group {number} of {name}",
                names[parameter] if parameter in names else form_of(parameter),
            )


class RestorableParts:
    """The parts of a state's objects as they are now, to put them back when the script replaces some."""

    def __init__(self, values: Values) -> None:
        modules = [value for value in values.values() if isinstance(value, torch.nn.Module)]
        self._dicts: list[tuple[dict[str, Any], dict[str, Any]]] = [
            (own, dict(own))
            for module in modules
            for each in module.modules()
            for own in (each._parameters, each._buffers, each._modules)
        ]
        self._lists = [
            (own, list(own))
            for value in values.values()
            for own in (groups_of(value), *(group["params"] for group in groups_of(value)))
            if isinstance(own, list)
        ]
        self._values = dict(values)

    def put_back(self) -> None:
        """Have the objects consist of these parts again."""
        for own, parts in self._dicts:
            own.clear()
            own.update(parts)
        for own_list, items in self._lists:
            own_list[:] = items
        module_walk.note_change()
