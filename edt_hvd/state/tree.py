"""The values of a training state as trees of plain containers and tensors, and back.

The *full* tree has everything. The *small* tree leaves out what changes only in ``optimizer.step()``: the
parameters of modules that an optimizer of the state steps, and the optimizers' own states.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import torch

from edt_hvd.errors import StateError
from edt_hvd.observing import Values
from edt_hvd.reduction import buffers
from edt_hvd.reduction.gradients.exact import ExactReducer
from edt_hvd.reduction.optimizer import reducer_of
from edt_hvd.state.module_walk import buffers_of, parameters_of, tensors_of
from edt_hvd.state.snapshot import copied
from edt_hvd.state.state_dicts import (
    NonPersistentBuffers,
    Stateful,
    Trainable,
    full_state,
    groups_of,
    has_torch_layout,
    is_plain,
    is_stateful,
    is_watchable,
    load_buffers,
    load_module,
    load_optimizer,
    options,
)
from edt_hvd.state.structure import PREPARED, SUFFIX, structure_tree

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
            found |= {f"{name}.trainable": Trainable(value), f"{name}.caches": NonPersistentBuffers(value)}
        elif isinstance(history := _reducer_in(value), ExactReducer):
            found[f"{name}.gradients"] = history
    return found


def _reducer_in(value: Any) -> Any:
    """The reducer of a distributed optimizer, or of the one that an optimizer wraps."""
    own = reducer_of(value)
    if own is None and hasattr(value, "param_groups"):
        return next(
            (found for each in getattr(value, "__dict__", {}).values() if (found := reducer_of(each))), None
        )
    return own


def full_tree(values: Values) -> dict[str, Any]:
    """The states of all values, and of their companions."""
    states = {name: full_state(value) for name, value in values.items()}
    return states | _companion_tree(values) | structure_tree(values)


def _companion_tree(values: Values) -> dict[str, Any]:
    return {name: companion.state_dict() for name, companion in companions_of(values).items()}


@dataclass(frozen=True)
class ModuleKinds:
    """How the modules of a state are treated in its small tree.

    Attributes:
        stepped: names of those of which an optimizer of the state steps parameters.
        plain: names of the others whose ``state_dict`` is what `tensors_of` finds.
        optimizers: names of those with the state of torch's.
    """

    stepped: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    optimizers: frozenset[str] = frozenset()

    @classmethod
    def of(cls, values: Values) -> "ModuleKinds":
        """The kinds of these values' modules."""
        found = {name: each for name, each in values.items() if isinstance(each, torch.optim.Optimizer)}
        optimizers = (name for name, each in found.items() if has_torch_layout(each))
        watched = (each for each in found.values() if is_watchable(each))
        groups = (group for each in watched for group in groups_of(each))
        stepped = {parameter for group in groups for parameter in group["params"]}
        modules = modules_of(values)
        others = {name: each for name, each in modules.items() if stepped.isdisjoint(parameters_of(each))}
        plain = (name for name, each in others.items() if is_plain(each))
        return cls(frozenset(modules.keys() - others.keys()), frozenset(plain), frozenset(optimizers))

    def small_tree(self, values: Values) -> dict[str, Any]:
        """The small tree of the values."""
        return {name: self._small(name, value) for name, value in values.items()} | _companion_tree(values)

    def _small(self, name: str, value: Any) -> Any:
        if name in self.stepped:
            return buffers_of(value, persistent=True)
        if name in self.plain:
            return tensors_of(value)
        if name in self.optimizers:
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


def load(values: Values, tree: Mapping[str, Any], owned: bool = False) -> dict[str, Any]:
    """Load a full tree into the objects.

    Args:
        values: the objects.
        tree: theirs.
        owned: nobody else uses the tree, so that optimizers may keep tensors of it.

    Returns:
        The plain values of the tree, copied.

    Raises:
        StateError: an object refuses its state.
    """
    return _load(values, tree, ModuleKinds(), owned)


def load_small(values: Values, tree: Mapping[str, Any], kinds: ModuleKinds) -> dict[str, Any]:
    """Load a small tree, that of these kinds, into the objects; else as `load`."""
    return _load(values, tree, kinds, owned=False)


def _load(values: Values, tree: Mapping[str, Any], kinds: ModuleKinds, owned: bool) -> dict[str, Any]:
    buffers.invalidate()
    objects = dict(values) | companions_of(values)
    plain: dict[str, Any] = {}
    for name, saved in tree.items():
        if name.endswith((SUFFIX, PREPARED)):
            continue
        if not is_stateful(objects[name]):
            plain[name] = copied(saved)
            continue
        try:
            _load_object(objects[name], saved, name in kinds.stepped, name in kinds.optimizers, owned)
        except Exception as error:
            raise StateError(f"its {name} cannot be loaded: {type(error).__name__}: {error}") from error
    return plain


def _load_object(value: Any, saved: Any, buffers_alone: bool, options_alone: bool, owned: bool) -> None:
    if isinstance(value, torch.nn.Module):
        (load_buffers if buffers_alone else load_module)(value, saved)
    elif options_alone:
        for group, saved_options in zip(value.param_groups, saved, strict=True):
            group.update(copied(saved_options))
    elif isinstance(value, torch.optim.Optimizer):
        load_optimizer(value, saved, owned)
    else:
        value.load_state_dict(copied(saved))
