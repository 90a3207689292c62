"""How objects are reduced that pickle, cloudpickle or torch refuse, or pickle in part."""

import functools
import types
import typing
from typing import Any

import torch
from torch.nn.utils import parametrize


def _cell(cell: types.CellType) -> Any:
    """A variable of closures; its value may refer to them."""
    contents = () if cell == types.CellType() else (cell.cell_contents,)
    return types.CellType, (), contents, None, None, _set_cell


def _set_cell(cell: types.CellType, contents: tuple[Any, ...]) -> None:
    for value in contents:
        cell.cell_contents = value


def _cached(function: Any) -> Any:
    """A function with an empty cache."""
    own = {name: value for name, value in vars(function).items() if name != "cache_parameters"}
    return _cache, (function.__wrapped__, function.cache_parameters()), own


def _cache(function: Any, parameters: dict[str, Any]) -> Any:
    return functools.lru_cache(**parameters)(function)


REDUCERS: dict[type, Any] = {
    types.CellType: _cell,
    type(functools.lru_cache(len)): _cached,
    functools.cached_property: lambda it: (type(it), (it.func,), {"attrname": it.attrname}),
    typing.NewType: lambda it: (type(it), (it.__name__, it.__supertype__), vars(it)),
    typing.ParamSpec: lambda it: (type(it), (it.__name__,)),
}
"""Of types that pickle refuses, or looks for by name in modules, which executors do not import."""


def reduce_of_torch(obj: Any) -> Any:
    """How an optimizer, module or parameter is reduced; None if torch's own way keeps all of it."""
    if isinstance(obj, torch.optim.Optimizer):
        return _optimizer(obj)
    if isinstance(obj, torch.nn.Module) and parametrize.is_parametrized(obj):  # which refuses itself
        return _bare, (type(obj),), dict(vars(obj))
    if isinstance(obj, torch.nn.Parameter) and (own := _hooks_of(obj)):  # which torch leaves out
        make, arguments = obj.__reduce_ex__(5)  # type: ignore[no-untyped-call]
        return make, arguments, own, None, None, _set_hooks
    return None


def _optimizer(optimizer: torch.optim.Optimizer) -> Any:
    """An optimizer with the attributes of its own class, which torch leaves out."""
    usual = vars(torch.optim.SGD([torch.zeros(1)], 0.1)).keys() | {"step", "_opt_called"}
    own = {name: value for name, value in vars(optimizer).items() if name not in usual}
    state = optimizer.__getstate__()
    return _bare, (type(optimizer),), (state, own), None, None, _set_optimizer


def _hooks_of(parameter: torch.nn.Parameter) -> dict[str, Any]:
    names = ("_backward_hooks", "_post_accumulate_grad_hooks")
    return {name: value for name in names if (value := getattr(parameter, name))}


def _set_hooks(parameter: torch.nn.Parameter, own: dict[str, Any]) -> None:
    for name, value in own.items():
        setattr(parameter, name, value)


def _bare(kind: Any) -> Any:
    return kind.__new__(kind)


def _set_optimizer(optimizer: torch.optim.Optimizer, states: tuple[dict[str, Any], dict[str, Any]]) -> None:
    optimizer.__setstate__(states[0])
    vars(optimizer).update(states[1])
