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
import pickle
import sys
import threading
import types
from collections.abc import Mapping
from typing import IO, Any, ClassVar

import cloudpickle
from typing_extensions import override

from edt_hvd.wmla.errors import UnpicklableError
from edt_hvd.wmla.pickling.module_parts import ClassHooks, Globals, Part, make_module, set_class, set_nothing
from edt_hvd.wmla.pickling.object_paths import path_to, refusal
from edt_hvd.wmla.pickling.own_modules import is_own
from edt_hvd.wmla.pickling.reducers import REDUCERS, reduce_of_torch

Unpickler, load = pickle.Unpickler, pickle.load  # what torch.load asks its pickle_module for

_LEFT_OUT = frozenset({"__builtins__", "__cached__", "__loader__", "__spec__"})
"""Of a module's globals: the executor's import system makes them."""

_CODE = (types.FunctionType, type, types.ModuleType)

_ANEW: Mapping[type, Any] = {
    type(threading.Lock()): threading.Lock,
    type(threading.RLock()): threading.RLock,
    threading.local: threading.local,
}
"""What every process has its own of, in the globals of modules, by type, and what makes it."""


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


_module_with: Any = pickle.whichmodule  # type: ignore[attr-defined]  # the types do not know it


class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # it has no types
    """Pickles the arguments of a training by name.

    Raises:
        UnpicklableError: something cannot be pickled; the message says where it is.
    """

    dispatch_table: ClassVar[Mapping[Any, Any]] = collections.ChainMap(
        REDUCERS, cloudpickle.Pickler.dispatch_table
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
        self.globals_ref.update({key: Globals(sys.modules[name]) for key, name in self._own.items()})

    @override
    def dump(self, obj: Any) -> None:
        self._roots = obj
        for name in self._whole.values():
            cloudpickle.register_pickle_by_value(sys.modules[name])
        start = self._file.tell()
        try:
            while not self._is_dumped((obj, (Part(sys.modules["__main__"], self._named), ClassHooks()))):
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
        of_torch = reduce_of_torch(obj)
        if of_torch is not None:
            return of_torch
        try:
            reduced = super().reducer_override(obj)
            if isinstance(obj, type) and isinstance(reduced, tuple) and len(reduced) == 6:
                return *reduced[:-1], set_class
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
        parts = (Part(module, first), *(Part(module, {key: value}) for key, value in rest.items()))
        return make_module, (name, module.__file__, parent), parts, None, None, set_nothing

    def _unpicklable(self, obj: Any, error: Exception) -> Any:
        path = path_to(obj, self._roots, self._own)
        if path is not None:
            raise UnpicklableError(refusal(path, error))
        if type(obj) in _ANEW:
            return _ANEW[type(obj)], ()
        values = {
            f"{name}.{key}": value
            for name in self._whole.values()
            for key, value in vars(sys.modules[name]).items()
            if not isinstance(value, _CODE) and f"{name}.{key}" not in self._left_out
        }
        path = path_to(obj, values, self._own)
        if path is not None:  # not the part alone: with another in its place, the whole may fail to unpickle
            raise _LeaveOutError(path[0][0])
        return Missing, (f"a {type(obj).__qualname__} of a module",)
