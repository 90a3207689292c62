"""The variables that callbacks may change: where they are, and their values.

They are globals of the script and of the user's own modules, attributes of classes and functions there and of
the objects that the program was given, and variables of closures.
"""

import importlib
import os
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from edt_hvd.wmla.pickling.own_modules import is_own

_CLOSURE = " of its closure"
"""Follows the name of a variable that a function shares with others."""


class Variable(NamedTuple):
    """Where a variable is.

    Attributes:
        module: its name; empty for an attribute of a callback or another object of the program.
        owner: the class or function in it whose attribute it is, or the number of the object; may be empty.
        name: its own; empty for a callback that has a `state_dict`.
    """

    module: str
    owner: str
    name: str


class Variables:
    """The variables of a program.

    Args:
        callbacks: the program's.
        objects: what else the program was given.
        is_part: whether a value is one that every executor has its own of, such as the model.
    """

    def __init__(
        self, callbacks: Sequence[Any], objects: Sequence[Any], is_part: Callable[[Any], bool]
    ) -> None:
        self._callbacks = len(callbacks)
        self._objects = (*callbacks, *objects)
        self._is_part = is_part

    def of_callbacks(self) -> Iterator[tuple[Variable, Any]]:
        """The callbacks that have a `state_dict`, and the attributes of the others."""
        for number, callback in enumerate(self._objects[: self._callbacks]):
            if is_stateful(callback):
                yield Variable("", str(number), ""), callback
                continue
            for name, value in vars(callback).items():
                if name not in ("params", "model") and not self._is_part(value) and not _is_in_log_dir(value):
                    yield Variable("", str(number), name), value

    def is_of_callback(self, variable: Variable) -> bool:
        """Whether `of_callbacks` gives it."""
        return not variable.module and int(variable.owner) < self._callbacks

    def others(self) -> Iterator[tuple[Variable, Any]]:
        """All variables that are no callback's."""
        for number in range(self._callbacks, len(self._objects)):
            yield from _attributes("", str(number), self._objects[number])
        for name, module in sys.modules.copy().items():
            if name == "__main__" or (is_own(module) and module.__name__ == name):
                yield from _attributes(name, "", module)
                for key, value in list(vars(module).items()):
                    if isinstance(value, type | types.FunctionType) and value.__module__ == name:
                        yield from _attributes(name, key, value)

    def read(self, variable: Variable) -> Any:
        """The present value; None if there is none."""
        holder, name = self._owner(variable), variable.name
        if not name.endswith(_CLOSURE):
            return vars(holder).get(name) if name else holder
        cell = _cell(holder, name)
        return None if cell == types.CellType() else cell.cell_contents

    def write(self, variable: Variable, value: Any) -> None:
        """Set the value."""
        holder, name = self._owner(variable), variable.name
        if name.endswith(_CLOSURE):
            _cell(holder, name).cell_contents = value
        else:
            setattr(holder, name, value)

    def name_of(self, variable: Variable) -> str:
        """What messages call it."""
        module, owner, name = variable
        parts = (module, owner, name) if module else (type(self._owner(variable)).__name__, name)
        return ".".join(filter(None, parts))

    def _owner(self, variable: Variable) -> Any:
        if not variable.module:
            return self._objects[int(variable.owner)]
        module = sys.modules.get(variable.module) or importlib.import_module(variable.module)
        return vars(module)[variable.owner] if variable.owner else module


def is_stateful(value: Any) -> bool:
    """Whether an object has `state_dict` and `load_state_dict`."""
    return not isinstance(value, type) and hasattr(value, "state_dict") and hasattr(value, "load_state_dict")


def _is_in_log_dir(value: Any) -> bool:
    """Whether it is a path in the folder that this executor alone has; those that join have their own."""
    folder = os.environ.get("LOG_DIR")
    is_path = isinstance(value, str | PurePath) and bool(folder)
    return is_path and Path(os.path.abspath(value)).is_relative_to(os.path.abspath(str(folder)))


def _attributes(module: str, owner: str, holder: Any) -> Iterator[tuple[Variable, Any]]:
    function = getattr(holder, "__func__", holder)
    if isinstance(function, types.FunctionType):
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if name != "__class__" and cell != types.CellType():
                yield Variable(module, owner, name + _CLOSURE), cell.cell_contents
    for name, value in list(getattr(holder, "__dict__", {}).items()):
        is_special = name.startswith("__") and name.endswith("__")
        if not is_special and not isinstance(value, types.ModuleType):
            yield Variable(module, owner, name), value


def _cell(holder: Any, name: str) -> types.CellType:
    function = getattr(holder, "__func__", holder)
    index = function.__code__.co_freevars.index(name.removesuffix(_CLOSURE))
    cell: types.CellType = function.__closure__[index]
    return cell
