"""The values of a training state as trees of plain containers and tensors, and back.

The *full* tree has everything. The *small* tree leaves out what changes only in ``optimizer.step()``: the
parameters of modules that an optimizer of the state steps, and the optimizers' own states.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from edt_hvd.observing import Values
from edt_hvd.reduction import buffers
from edt_hvd.reduction.exact import ExactReducer
from edt_hvd.reduction.optimizer import reducer_of
from edt_hvd.state.module_walk import buffers_of, parameters_of, tensors_of
from edt_hvd.state.snapshot import copied
from edt_hvd.state.state_dicts import (
    Caches,
    Stateful,
    Trainable,
    full_state,
    is_plain,
    is_stateful,
    load_module,
    load_optimizer,
    options,
)

T = TypeVar("T")


def of_type(values: Values, kind: type[T]) -> list[T]:
    """The values of that type."""
    return [value for value in values.values() if isinstance(value, kind)]


def modules_of(values: Values) -> dict[str, torch.nn.Module]:
    """The modules among the values."""
    return {name: value for name, value in values.items() if isinstance(value, torch.nn.Module)}


def companions_of(values: Values) -> dict[str, Stateful]:
    """What belongs to modules and optimizers but is not in their ``state_dict``."""
    found: dict[str, Stateful] = {}
    for name, value in values.items():
        if isinstance(value, torch.nn.Module):
            found |= {f"{name}.trainable": Trainable(value), f"{name}.caches": Caches(value)}
        elif isinstance(history := reducer_of(value), ExactReducer):
            found[f"{name}.gradients"] = history
    return found


def full_tree(values: Values) -> dict[str, Any]:
    """The states of all values, and of their companions."""
    return {name: full_state(value) for name, value in values.items()} | _companion_tree(values)


def _companion_tree(values: Values) -> dict[str, Any]:
    return {name: companion.state_dict() for name, companion in companions_of(values).items()}


@dataclass(frozen=True)
class ModuleKinds:
    """How the modules of a state are treated in its small tree.

    Attributes:
        stepped: names of those of which an optimizer of the state steps parameters.
        plain: names of the others whose ``state_dict`` is what `tensors_of` finds.
    """

    stepped: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()

    @classmethod
    def of(cls, values: Values) -> "ModuleKinds":
        """The kinds of these values' modules."""
        groups = (group for each in of_type(values, torch.optim.Optimizer) for group in each.param_groups)
        stepped = {parameter for group in groups for parameter in group["params"]}
        modules = modules_of(values)
        others = {name: each for name, each in modules.items() if stepped.isdisjoint(parameters_of(each))}
        plain = (name for name, each in others.items() if is_plain(each))
        return cls(frozenset(modules.keys() - others.keys()), frozenset(plain))

    def small_tree(self, values: Values) -> dict[str, Any]:
        """The small tree of the values."""
        return {name: self._small(name, value) for name, value in values.items()} | _companion_tree(values)

    def _small(self, name: str, value: Any) -> Any:
        if name in self.stepped:
            return buffers_of(value, persistent=True)
        if name in self.plain:
            return tensors_of(value)
        if isinstance(value, torch.optim.Optimizer):
            return [options(group) for group in value.param_groups]
        return full_state(value)

    def plain_parameters(self, values: Values, small: dict[str, Any]) -> frozenset[tuple[str, str]]:
        """The parameters in the small tree: names of a module, and of a tensor in it."""
        return frozenset(
            (name, key)
            for name in self.plain
            for key in small[name].keys() - buffers_of(values[name], persistent=True).keys()
        )

    def parameter_versions(self, values: Values) -> list[int]:
        """How many writes torch has counted to each parameter of the stepped modules."""
        return [p._version for name in values if name in self.stepped for p in parameters_of(values[name])]


def load(values: Values, tree: Mapping[str, Any]) -> dict[str, Any]:
    """Load a tree, or the small part of one, into the objects.

    Returns:
        The plain values of the tree, copied: they replace those of the state.
    """
    buffers.invalidate()
    companions = companions_of(values)
    replaced: dict[str, Any] = {}
    for name, saved in tree.items():
        value = companions[name] if name in companions else values[name]
        if isinstance(value, torch.nn.Module):
            load_module(value, saved)
        elif isinstance(value, torch.optim.Optimizer) and isinstance(saved, list):
            for group, saved_options in zip(value.param_groups, saved, strict=True):
                group.update(copied(saved_options))
        elif isinstance(value, torch.optim.Optimizer):
            load_optimizer(value, saved)
        elif is_stateful(value):
            value.load_state_dict(copied(saved))
        else:
            replaced[name] = copied(saved)
    return replaced
