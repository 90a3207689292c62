"""A walk over a module's parameters and buffers, fast enough for commits; torch's own takes milliseconds.

Which submodules a module has is remembered until some module anywhere is given another one. What is in them
is looked at every time.
"""

import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules.module import register_module_module_registration_hook

_changes = 0
_walked: "weakref.WeakKeyDictionary[nn.Module, tuple[int, list[tuple[str, weakref.ref[nn.Module]]]]]" = (
    weakref.WeakKeyDictionary()
)


def note_change(*_: Any) -> None:
    """Some module has been given another submodule."""
    global _changes
    _changes += 1


register_module_module_registration_hook(note_change)


def parameters_of(module: nn.Module) -> list[nn.Parameter]:
    """All parameters, in the order of ``module.parameters()``; a tied one as often as it is used."""
    found: list[nn.Parameter | None] = []
    for _, each in _modules(module):
        if own := each.__dict__["_parameters"]:
            found += own.values()
    return [parameter for parameter in found if parameter is not None]


def training_flags(module: nn.Module) -> bytes:
    """For the module and all below it, whether each is in training mode."""
    return bytes(each.training for _, each in _modules(module))


def set_training_flags(module: nn.Module, flags: bytes) -> None:
    """Put the module and all below it into the modes that `training_flags` gave."""
    for (_, each), flag in zip(_modules(module), flags, strict=True):
        each.training = bool(flag)


def add_forms(module: nn.Module, found: list[Any]) -> None:
    """Append the names, shapes and dtypes of all parameters and persistent buffers, and parameters' ids."""
    tensors: list[torch.Tensor | None] = []
    buffers: list[torch.Tensor | None] = []
    for prefix, each in _modules(module):
        own = each.__dict__
        found.append(prefix)
        if parameters := own["_parameters"]:
            found += parameters
            tensors += parameters.values()
        if named := own["_buffers"]:
            if others := own["_non_persistent_buffers_set"]:
                named = {name: buffer for name, buffer in named.items() if name not in others}
            found += named
            buffers += named.values()
    found += map(id, tensors)
    present = [tensor for tensor in (*tensors, *buffers) if tensor is not None]
    found += [tensor.shape for tensor in present]
    found += [tensor.dtype for tensor in present]


def buffers_of(module: nn.Module, *, persistent: bool) -> dict[str, torch.Tensor]:
    """The buffers that belong to the module's ``state_dict``, or the others.

    By name, and each once: together they are what ``module.named_buffers()`` has.
    """
    if not persistent and not any(each._non_persistent_buffers_set for _, each in _modules(module)):
        return {}
    found: dict[str, torch.Tensor] = {}
    seen = set()
    for prefix, each in _modules(module):
        for name, buffer in each.__dict__["_buffers"].items():
            if buffer is not None and id(buffer) not in seen:
                seen.add(id(buffer))
                if persistent == (name not in each._non_persistent_buffers_set):
                    found[f"{prefix}{name}"] = buffer
    return found


def tensors_of(module: nn.Module) -> dict[str, torch.Tensor]:
    """What ``module.state_dict()`` has, unless the module changes what is in it, or uses a part twice."""
    buffers = buffers_of(module, persistent=True)
    return buffers | {
        f"{prefix}{name}": parameter.detach()
        for prefix, each in _modules(module)
        for name, parameter in each._parameters.items()
        if parameter is not None
    }


def _modules(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """The module and all below it, with what their tensors' names begin with."""
    walked = _walked.get(module)
    if walked is None or walked[0] != _changes:
        named = module.named_modules()
        walked = _changes, [(f"{name}." if name else "", weakref.ref(each)) for name, each in named]
        _walked[module] = walked
    for prefix, reference in walked[1]:
        each = reference()
        if each is not None:  # else it was taken out, and dropped
            yield prefix, each
