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
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, ClassVar

import cloudpickle
import torch
from torch.nn.utils import parametrize
from torch.utils import hooks
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

_CODE = (types.FunctionType, type, types.ModuleType)

_ANEW: Mapping[type, Any] = {
    type(threading.Lock()): threading.Lock,
    type(threading.RLock()): threading.RLock,
    threading.local: threading.local,
}
"""What every process has its own of, in the globals of modules, by type, and what makes it."""


def is_own(module: Any) -> bool:
    """Whether a module is the user's: Python source that is not among installed packages."""
    if not issubclass(type(module), types.ModuleType):  # isinstance asks the object, which may import more
        return False
    file = vars(module).get("__file__")
    if not isinstance(file, str) or not file.endswith(".py"):
        return False
    is_installed = f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file
    return not is_installed and not file.startswith(_PACKAGES)


class _LeaveOutError(Exception):
    """A global of a module cannot be pickled."""


class Missing:
    """Stands for a global of an own module that cannot be pickled; any use of it is an error."""

    def __init__(self, what: str) -> None:
        vars(self)["_what"] = what

    @override
    def __reduce__(self) -> Any:
        return Missing, (vars(self)["_what"],)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise UnpicklableError(f"executors do not have {vars(self)['_what']}: it cannot be pickled")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # whoever looks whether there is such a method
            raise AttributeError(name)
        self._refuse()

    __call__ = __enter__ = __iter__ = __getitem__ = __len__ = __setattr__ = _refuse


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


_REDUCERS: dict[type, Any] = {
    types.CellType: _cell,
    type(functools.lru_cache(len)): _cached,
    functools.cached_property: lambda it: (type(it), (it.func,), {"attrname": it.attrname}),
    typing.NewType: lambda it: (type(it), (it.__name__, it.__supertype__), vars(it)),
    typing.ParamSpec: lambda it: (type(it), (it.__name__,)),
}
"""Of types that pickle refuses, or looks for by name in modules, which executors do not import."""

_module_with: Any = pickle.whichmodule  # type: ignore[attr-defined]  # the types do not know it


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Pickles the arguments of a training by name.

    Raises:
        UnpicklableError: something cannot be pickled; the message says where it is.
    """

    dispatch_table: ClassVar[Mapping[Any, Any]] = collections.ChainMap(
        _REDUCERS, cloudpickle.Pickler.dispatch_table
    )

    def __init__(self, file: IO[bytes], protocol: int | None = None) -> None:
        super().__init__(file, protocol)
        self._file = file
        self._roots: Mapping[str, Any] = {}
        self._left_out: set[str] = set()
        """Globals of own modules that contain what cannot be pickled."""
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
        start = self._file.tell()
        try:
            while not self._is_dumped((obj, (_Part(sys.modules["__main__"], self._named), _Hooks()))):
                self.clear_memo()
                self._file.seek(start)
                self._file.truncate()
        except UnpicklableError:
            raise
        except (pickle.PicklingError, TypeError, AttributeError) as error:  # from C, without its object
            raise UnpicklableError(f"what train() is given cannot be pickled: {error}") from error
        finally:
            for name in self._whole.values():
                cloudpickle.unregister_pickle_by_value(sys.modules[name])

    def _is_dumped(self, obj: Any) -> bool:
        """False if one more global of a module has to be left out."""
        try:
            super().dump(obj)
        except _LeaveOutError as error:
            self._left_out.add(str(error))
            return False
        return True

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
        if isinstance(obj, torch.nn.Parameter) and (own := _hooks_of(obj)):  # which torch leaves out
            make, arguments = obj.__reduce_ex__(5)  # type: ignore[no-untyped-call]
            return make, arguments, own, None, None, _set_hooks
        try:
            reduced = super().reducer_override(obj)
            if isinstance(obj, type) and isinstance(reduced, tuple) and len(reduced) == 6:
                return *reduced[:-1], _set_class
            if reduced is NotImplemented and not isinstance(obj, type | types.FunctionType):
                reducer = self.dispatch_table.get(type(obj))
                reduced = obj.__reduce_ex__(5) if reducer is None else reducer(obj)
            # Executors import installed modules alone to look for it there.
            if isinstance(reduced, str) and _module_with(obj, reduced) in self._own.values():
                raise pickle.PicklingError("nothing but its name says what it is")
        except Exception as error:  # noqa: BLE001 - objects raise what they like when they are pickled
            return self._unpicklable(obj, error)
        return reduced

    def _dynamic_function_reduce(self, func: Any) -> Any:
        """cloudpickle's, but closures share variables, and modules that go as a whole have the globals."""
        make, arguments, (state, slots), *rest = super()._dynamic_function_reduce(func)
        slots["__closure__"] = None
        arguments = (*arguments[:-1], func.__closure__)
        if self._own.get(id(func.__globals__), "__main__") != "__main__":
            slots["__globals__"] = {}
        return make, arguments, (state, slots), *rest

    def _module(self, module: types.ModuleType) -> Any:
        name = module.__name__
        values = {key: value for key, value in vars(module).items() if key not in _LEFT_OUT}
        first = {key: value for key, value in values.items() if isinstance(value, _CODE)}
        rest = {
            key: Missing(f"{name}.{key}, a {type(value).__qualname__}")
            if f"{name}.{key}" in self._left_out
            else value
            for key, value in values.items()
        }
        parent = sys.modules.get(name.rpartition(".")[0])
        # Functions come first: objects may need them to be unpickled. The rest follows as it was made.
        parts = (_Part(module, first), *(_Part(module, {key: value}) for key, value in rest.items()))
        return _make_module, (name, module.__file__, parent), parts, None, None, _ignore

    def _unpicklable(self, obj: Any, error: Exception) -> Any:
        path = _path_to(obj, self._roots, self._own)
        if path is not None:
            raise UnpicklableError(_refusal(path, error))
        if type(obj) in _ANEW:
            return _ANEW[type(obj)], ()
        values = {
            f"{name}.{key}": value
            for name in self._whole.values()
            for key, value in vars(sys.modules[name]).items()
            if not isinstance(value, _CODE) and f"{name}.{key}" not in self._left_out
        }
        path = _path_to(obj, values, self._own)
        if path is not None:  # not the part alone: with another in its place, the whole may fail to unpickle
            raise _LeaveOutError(path[0][0])
        return Missing, (f"a {type(obj).__qualname__} of a module",)


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


class _Hooks:
    """Comes last in a pickle; sets what classes have for making other classes."""

    def __reduce__(self) -> Any:
        return _set_hooks_of_classes, (hooks.RemovableHandle.next_id,)


def _globals_of_main() -> dict[str, Any]:
    return vars(sys.modules["__main__"])


_hooks_of_classes: list[tuple[type, str, Any]] = []


def _set_class(kind: type, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
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


def _fill(module: types.ModuleType, _beginning: None, values: dict[str, Any]) -> None:
    _begun.pop()
    vars(module).update(values)


def _ignore(_module: types.ModuleType, _parts: Any) -> None:
    pass


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
