"""The states of torch's objects as trees of plain containers and tensors, and back, bit by bit."""

import warnings
from typing import Any, Protocol, TypeGuard

import torch

from edt_hvd.reduction.grad_modes import overwrite
from edt_hvd.state.module_walk import (
    buffers_of,
    parameters_of,
    set_training_flags,
    tensors_of,
    training_flags,
)
from edt_hvd.state.snapshot import copied


class Stateful(Protocol):
    """Anything with torch's `state_dict` and `load_state_dict`."""

    def state_dict(self) -> dict[str, Any]:
        """The object's state."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> Any:
        """Take over a state that `state_dict` gave."""


def is_stateful(value: Any) -> TypeGuard[Stateful]:
    """Whether it is `Stateful`; many times faster than a protocol that `isinstance` looks through."""
    return hasattr(value, "state_dict") and hasattr(value, "load_state_dict") and not isinstance(value, type)


def options(group: dict[str, Any]) -> dict[str, Any]:
    """All of an optimizer's parameter group but the parameters."""
    return {name: value for name, value in group.items() if name != "params"}


def groups_of(value: Any) -> list[dict[str, Any]]:
    """The parameter groups of an optimizer, or of an object that wraps one; none of anything else."""
    groups = getattr(value, "param_groups", None)
    if isinstance(groups, list) and all(isinstance(each, dict) and "params" in each for each in groups):
        return groups
    return []


def has_torch_layout(optimizer: torch.optim.Optimizer) -> bool:
    """Whether its state is that of torch's optimizers, which changes in steps alone; see `is_watchable`."""
    return is_watchable(optimizer) and optimizer.state_dict().keys() == {"state", "param_groups"}


def is_watchable(optimizer: torch.optim.Optimizer) -> bool:
    """Whether torch calls hooks at its steps: not at those of a wrapper that torch has not initialized."""
    return hasattr(optimizer, "_optimizer_step_post_hooks")


def full_state(value: Any) -> Any:
    """All of an object's state, but for a module's `NonPersistentBuffers`; a plain value itself."""
    return value.state_dict() if is_stateful(value) else value


def is_plain(module: torch.nn.Module) -> bool:
    """Whether its ``state_dict`` is what `tensors_of` finds much quicker."""
    saved, found = module.state_dict(), tensors_of(module)
    return saved.keys() == found.keys() and all(
        isinstance(value, torch.Tensor) and value.data_ptr() == found[key].data_ptr()
        for key, value in saved.items()
    )


def load_module(module: torch.nn.Module, saved: dict[str, Any]) -> None:
    """Load all that `full_state` gave, and `NonPersistentBuffers` that older checkpoints have among it.

    Raises:
        RuntimeError: something is missing or has another shape, as `load_state_dict` finds it.
    """
    caches = NonPersistentBuffers(module)
    caches.load_state_dict(saved)
    foreign = caches.state_dict().keys() - module.state_dict().keys()
    module.load_state_dict({key: value for key, value in saved.items() if key not in foreign})


def load_buffers(module: torch.nn.Module, saved: dict[str, torch.Tensor]) -> None:
    """Load the persistent buffers alone.

    Raises:
        KeyError: one is missing.
    """
    for key, buffer in buffers_of(module, persistent=True).items():
        overwrite(buffer, saved[key])


def load_optimizer(optimizer: torch.optim.Optimizer, saved: dict[str, Any], owned: bool = False) -> None:
    """Load a state without torch's conversion to the parameters' types, which would change its bits.

    A state of another layout than torch's is the optimizer's own affair.

    Args:
        optimizer: the optimizer.
        saved: its state.
        owned: nobody else uses it, so that its tensors become the optimizer's where they are on its device.
    """
    optimizer.load_state_dict(saved if owned else copied(saved))
    if not {"state", "param_groups"} <= saved.keys():
        return
    for group, saved_group in zip(optimizer.param_groups, saved["param_groups"], strict=True):
        for parameter, number in zip(group["params"], saved_group["params"], strict=True):
            own = optimizer.state.get(parameter, {})
            for name, value in saved["state"].get(number, {}).items():
                loaded = own.get(name)
                if isinstance(value, torch.Tensor) and isinstance(loaded, torch.Tensor):
                    own[name] = value.detach().to(loaded.device, copy=not owned)


class NonPersistentBuffers:
    """A module's buffers that are not in its ``state_dict``, such as masks and tables.

    It may make them when it first needs them, and in another size whenever it needs more. So one that is
    missing, or has another form, is no error: the module's own stays. A warning names one of another form.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module

    def state_dict(self) -> dict[str, Any]:
        """The buffers by name."""
        return {name: each.detach() for name, each in buffers_of(self._module, persistent=False).items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Load those that the module has in the same form."""
        for name, own in buffers_of(self._module, persistent=False).items():
            saved = state.get(name)
            if saved is None:
                continue
            if (saved.shape, saved.dtype) == (own.shape, own.dtype):
                overwrite(own, saved)
            else:
                warnings.warn(
                    f"buffer {name}, which is not persistent, has shape {list(saved.shape)} in the state and "
                    f"{list(own.shape)} here, and stays as it is here; if training depends on what is in it, "
                    "register it as persistent and set its shape in prepare=",
                    stacklevel=2,
                )


class Trainable:
    """Which parameters are trainable and which submodules in training mode: a script may switch them."""

    def __init__(self, module: torch.nn.Module) -> None:
        self._module = module

    def state_dict(self) -> dict[str, Any]:
        """A flag for every parameter, and one for every submodule."""
        return {
            "requires_grad": bytes(p.requires_grad for p in parameters_of(self._module)),
            "training": training_flags(self._module),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Switch as the flags say. Older checkpoints have none of submodules."""
        trainable = state["requires_grad"]
        for parameter, flag in zip(parameters_of(self._module), trainable, strict=True):
            parameter.requires_grad_(bool(flag))
        if "training" in state:
            set_training_flags(self._module, state["training"])
