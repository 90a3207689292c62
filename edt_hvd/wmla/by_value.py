"""Pickles a program by value: functions and classes of the script and of the user's own modules, with state.

Executors do not run the script, so they are given what it has made. cloudpickle pickles functions and classes
of ``__main__`` with the globals that they use; this module adds the rest, all in one pickle, so that what is
shared stays shared:

- an own module that anything refers to goes as a whole, as it is in the driver, and is imported nowhere;
- a function's globals are those of its module in the executor, not a copy;
- what cannot be pickled is an error that says where it is; among the globals of an own module it is replaced
  by a `Missing`, because modules go as a whole, whether all of it is used or not.

`torch.save` and `torch.load` use this module as their ``pickle_module``: they keep shared memory of tensors.
"""

import collections
import functools
import importlib
import importlib.util
import os
import pickle
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import cloudpickle
import torch
from torch.nn.utils import parametrize
from typing_extensions import override

import edt_hvd
from edt_hvd.wmla.errors import UnpicklableError

Unpickler, load = pickle.Unpickler, pickle.load  # what torch.load asks its pickle_module for

_PACKAGES = tuple(
    os.path.join(folder, "")
    for folder in (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), *edt_hvd.__path__)
)

_LEFT_OUT = frozenset({"__builtins__", "__cached__", "__loader__", "__spec__"})
"""Of a module's globals: the executor's import system makes them."""

_ANEW: Mapping[type, Any] = {
    type(threading.Lock()): threading.Lock,
    type(threading.RLock()): threading.RLock,
    threading.local: threading.local,
}
"""Globals of modules that every process has its own of, by type, and what makes them."""


def is_own(module: Any) -> bool:
    """Whether a module is the user's: Python source that is not among installed packages."""
    if not issubclass(type(module), types.ModuleType):  # isinstance asks the object, which may import more
        return False
    file = vars(module).get("__file__")
    if not isinstance(file, str) or not file.endswith(".py"):
        return False
    is_installed = f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file
    return not is_installed and not file.startswith(_PACKAGES)


class Missing:
    """Stands for a global of an own module that cannot be pickled; any use of it is an error."""

    def __init__(self, what: str) -> None:
        vars(self)["_what"] = what

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UnpicklableError(f"executors do not have {vars(self)['_what']}: it cannot be pickled")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever looks whether there is such a method
            raise AttributeError(name)
        self._refuse()

    __call__ = __enter__ = __iter__ = __getitem__ = __len__ = __setattr__ = _refuse


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Pickles the arguments of a training by name.

    Raises:
        UnpicklableError: something cannot be pickled; the message says where it is.
    """

    def __init__(self, file: IO[bytes], protocol: int | None = None) -> None:
        super().__init__(file, protocol)
        self._roots: Mapping[str, Any] = {}
        self._named: dict[str, Any] = {}
        """Functions and classes of the script that executors find by name, to pickle objects of theirs."""
        modules = sys.modules.copy().items()
        own = {name: each for name, each in modules if is_own(each) and each.__name__ == name}
        self._whole = {id(module): name for name, module in own.items() if name != "__main__"}
        self._own = {id(vars(module)): name for name, module in own.items()}
        self._own[id(vars(sys.modules["__main__"]))] = "__main__"
        self.globals_ref.update({key: _Globals(sys.modules[name]) for key, name in self._own.items()})

    @override
    def dump(self, obj: Any) -> None:
        self._roots = obj
        for name in self._whole.values():
            cloudpickle.register_pickle_by_value(sys.modules[name])
        try:
            super().dump((obj, _Part(sys.modules["__main__"], self._named)))
        except UnpicklableError:
            raise
        except (pickle.PicklingError, TypeError, AttributeError) as error:  # from C, without its object
            raise UnpicklableError(f"what train() is given cannot be pickled: {error}") from error
        finally:
            for name in self._whole.values():
                cloudpickle.unregister_pickle_by_value(sys.modules[name])

    @override
    def reducer_override(self, obj: Any) -> Any:
        if id(obj) in self._whole:
            return self._module(obj)
        if isinstance(obj, type | types.FunctionType) and obj.__module__ == "__main__":
            name = obj.__qualname__
            if vars(sys.modules["__main__"]).get(name) is obj:
                self._named[name] = obj
        if isinstance(obj, torch.optim.Optimizer):
            return _optimizer(obj)
        if isinstance(obj, torch.nn.Module) and parametrize.is_parametrized(obj):  # which refuses itself
            return _bare, (type(obj),), dict(vars(obj))
        try:
            reduced = super().reducer_override(obj)
            if reduced is NotImplemented and not isinstance(obj, type | types.FunctionType):
                reducer = self.dispatch_table.get(type(obj))
                reduced = obj.__reduce_ex__(5) if reducer is None else reducer(obj)
        except Exception as error:  # noqa: BLE001 - objects raise what they like when they are pickled
            return self._unpicklable(obj, error)
        return reduced

    def _dynamic_function_reduce(self, func: Any) -> Any:
        """cloudpickle's, but a function of a module that goes as a whole has its globals there."""
        make, arguments, (state, slots), *rest = super()._dynamic_function_reduce(func)
        if self._own.get(id(func.__globals__), "__main__") != "__main__":
            slots["__globals__"] = {}
        return make, arguments, (state, slots), *rest

    def _module(self, module: types.ModuleType) -> Any:
        name = module.__name__
        values = {key: value for key, value in vars(module).items() if key not in _LEFT_OUT}
        code = (types.FunctionType, type, types.ModuleType)
        first = {key: value for key, value in values.items() if isinstance(value, code)}
        rest = {key: _Anew(type(value)) if type(value) in _ANEW else value for key, value in values.items()}
        parent = sys.modules.get(name.rpartition(".")[0])
        # Functions come first: objects may need them to be unpickled.
        parts = (_Part(module, first), _Part(module, rest))
        return _make_module, (name, module.__file__, parent), parts, None, None, _ignore

    def _unpicklable(self, obj: Any, error: Exception) -> Any:
        path = _path_to(obj, self._roots, self._own)
        if path is None:
            return Missing, (f"a {type(obj).__qualname__} of a module",)
        raise UnpicklableError(_refusal(path, error))


class _Globals:
    """The globals of a module, as those of its functions."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __reduce__(self) -> Any:
        is_main = self._module.__name__ == "__main__"
        return (_globals_of_main, ()) if is_main else (vars, (self._module,))


class _Part:
    """A part of a module's globals, which are set when it is unpickled."""

    def __init__(self, module: types.ModuleType, values: dict[str, Any]) -> None:
        self._module, self._values = module, values

    def __reduce__(self) -> Any:
        return _fill, (self._module, self._values)


class _Anew:
    """Something that is made anew in every process."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def __reduce__(self) -> Any:
        return _ANEW[self._kind], ()


def _globals_of_main() -> dict[str, Any]:
    return vars(sys.modules["__main__"])


_made: dict[str, types.ModuleType] = {}


def _make_module(name: str, file: str, parent: types.ModuleType | None) -> types.ModuleType:
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


def _fill(module: types.ModuleType, values: dict[str, Any]) -> None:
    vars(module).update(values)


def _ignore(_module: types.ModuleType, _parts: Any) -> None:
    pass


def _optimizer(optimizer: torch.optim.Optimizer) -> Any:
    """An optimizer with the attributes of its own class, which torch leaves out."""
    usual = vars(torch.optim.SGD([torch.zeros(1)], 0.1)).keys() | {"step", "_opt_called"}
    own = {name: value for name, value in vars(optimizer).items() if name not in usual}
    state = optimizer.__getstate__()
    return _bare, (type(optimizer),), (state, own), None, None, _set_optimizer


def _bare(kind: Any) -> Any:
    return kind.__new__(kind)


def _set_optimizer(optimizer: torch.optim.Optimizer, states: tuple[dict[str, Any], dict[str, Any]]) -> None:
    optimizer.__setstate__(states[0])
    vars(optimizer).update(states[1])


def _refusal(path: list[tuple[str, Any]], reason: Exception) -> str:
    """Says where it is. What an object of a library consists of is not the user's: the object is named."""
    values = [value for _, value in path]
    end = next((number for number, value in enumerate(values) if _is_closed(value)), len(values) - 1)
    name = "".join(text for text, _ in path[: end + 1])
    return (
        f"{name} is a {type(values[end]).__qualname__}, which cannot be sent to the executors ({reason}); "
        "make it there: in on_train_begin of a callback, in datasets_function, or where it is used first"
    )


def _is_closed(value: Any) -> bool:
    kind = type(value)
    is_open = isinstance(value, torch.nn.Module | types.FunctionType | types.MethodType | functools.partial)
    is_users = kind.__module__ in ("__main__", "builtins") or is_own(sys.modules.get(kind.__module__))
    return not is_open and not is_users


def _path_to(wanted: Any, roots: Mapping[str, Any], own: Mapping[int, str]) -> list[tuple[str, Any]] | None:
    """The names and objects that lead to an object, breadth first; None if only modules' globals do."""
    seen = {id(roots)}
    todo: collections.deque[list[tuple[str, Any]]] = collections.deque(
        [(name, value)] for name, value in roots.items()
    )
    while todo:
        path = todo.popleft()
        value = path[-1][1]
        if value is wanted:
            return path
        if id(value) not in seen and not isinstance(value, types.ModuleType):
            seen.add(id(value))
            todo.extend([*path, part] for part in _parts(value, own))
    return None


def _parts(value: Any, own: Mapping[int, str]) -> Iterator[tuple[str, Any]]:
    """What an object consists of, with the text that leads there."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, list | tuple | set | frozenset | collections.deque):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    elif isinstance(value, types.FunctionType):
        names, cells = value.__code__.co_freevars, value.__closure__ or ()
        for name, cell in zip(names, cells, strict=True):
            if cell != types.CellType():
                yield f"'s {name}", cell.cell_contents
        yield from ((f"'s default {item!r:.40}", item) for item in value.__defaults__ or ())
        if own.get(id(value.__globals__)) == "__main__":
            used = cloudpickle.cloudpickle._extract_code_globals(value.__code__)
            yield from (
                (f"'s global {name}", value.__globals__[name]) for name in used if name in value.__globals__
            )
    elif isinstance(value, types.MethodType):
        yield from (("'s object", value.__self__), ("", value.__func__))
    elif isinstance(value, functools.partial):
        yield from (("'s function", value.func), ("'s arguments", value.args), ("", value.keywords))
    elif isinstance(value, type):
        if value.__module__ == "__main__":
            yield from ((f".{name}", item) for name, item in vars(value).items())
    else:
        yield from ((f".{name}", item) for name, item in getattr(value, "__dict__", {}).items())
        yield "", type(value)
