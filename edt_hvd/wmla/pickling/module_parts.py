"""What a pickle has of modules, and how an executor makes them of it."""

import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import cloudpickle
from torch.utils import hooks

from edt_hvd.wmla.errors import UnpicklableError


class Globals:
    """The globals of a module, as those of its functions."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __reduce__(self) -> Any:
        is_main = self._module.__name__ == "__main__"
        return (_globals_of_main, ()) if is_main else (vars, (self._module,))


class Part:
    """A part of a module's globals, which are set when it is unpickled."""

    def __init__(self, module: types.ModuleType, values: dict[str, Any]) -> None:
        self._module, self._values = module, values

    def __reduce__(self) -> Any:
        names = [f"{self._module.__name__}.{name}" for name in self._values]
        return _fill, (self._module, _Beginning(", ".join(names)), self._values)


class _Beginning:
    """Comes before a part of a pickle; notes when it is unpickled that the part of that name follows."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __reduce__(self) -> Any:
        return _begin, (self._name,)


_begun: list[str] = []
"""The parts that are being unpickled: some are inside others."""


def _begin(name: str) -> None:
    _begun.append(name)


def cannot_be_unpickled(error: Exception) -> UnpicklableError:
    """What is to be said of an exception that `Unpickler.load` has raised."""
    what = _begun[-1] if _begun else "what train() is given"
    return UnpicklableError(
        f"{what} cannot be unpickled in the executors ({type(error).__name__}: {error}): its class does not "
        "load what it pickles; make it there, in on_train_begin of a callback or where it is used first, or "
        "give its class a __reduce__"
    )


class ClassHooks:
    """Comes last in a pickle; sets what classes have for making other classes."""

    def __reduce__(self) -> Any:
        return _set_hooks_of_classes, (hooks.RemovableHandle.next_id,)


def _globals_of_main() -> dict[str, Any]:
    return vars(sys.modules["__main__"])


_hooks_of_classes: list[tuple[type, str, Any]] = []


def set_class(kind: type, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """As cloudpickle does. What the program does for each class that is made, it has done: not here again."""
    names = ("__init_subclass__", *(("__new__", "__init__") if issubclass(kind, type) else ()))
    _hooks_of_classes.extend((kind, name, state[0].pop(name)) for name in names if name in state[0])
    cloudpickle.cloudpickle._class_setstate(kind, state)


def _set_hooks_of_classes(next_id: int) -> None:
    """And has torch's hooks that are registered from now on not replace those of the driver."""
    hooks.RemovableHandle.next_id = max(hooks.RemovableHandle.next_id, next_id)
    while _hooks_of_classes:
        setattr(*_hooks_of_classes.pop())


_made: dict[str, types.ModuleType] = {}


def make_module(name: str, file: str, parent: types.ModuleType | None) -> types.ModuleType:
    """An empty module, which is imported from now on wherever one of that name is; asked twice, the same."""
    if name in _made:
        return _made[name]
    is_package = Path(file).name == "__init__.py"
    spec = importlib.util.spec_from_file_location(
        name, file, submodule_search_locations=[str(Path(file).parent)] if is_package else None
    )
    assert spec is not None
    module = _made[name] = sys.modules[name] = importlib.util.module_from_spec(spec)
    if parent is not None:
        setattr(parent, name.rpartition(".")[2], module)
    return module


def _fill(module: types.ModuleType, _beginning: None, values: dict[str, Any]) -> None:
    _begun.pop()
    vars(module).update(values)


def set_nothing(_module: types.ModuleType, _parts: Any) -> None:
    """Set no state of a module: its parts did so when they were unpickled."""
