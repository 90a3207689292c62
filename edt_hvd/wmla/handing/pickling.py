"""Pickles for executors: by cloudpickle, but what they import is named in them."""

import contextlib
import importlib
import io
import pickle
import sys
from collections.abc import Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any

import cloudpickle

from edt_hvd.wmla.handing.forms import attributes

Names = tuple[str, ...]
"""Of an attribute of a module: its name; or first those of the classes and objects that it is in."""

Place = tuple[str, Names]
"""An attribute: the name of its module, and its own."""


def dumps(value: Any, places: Mapping[int, Place], own: str | None = None) -> bytes:
    """A pickle in which objects that have a place are that place.

    Args:
        value: has itself no place in this.
        places: by the objects' ids.
        own: the module that has the value; its functions and classes are no reference to it.
    """
    file = io.BytesIO()
    with _by_value(value, own):
        _Pickler(file, {key: place for key, place in places.items() if key != id(value)}).dump(value)
    return file.getvalue()


def loads(content: bytes) -> Any:
    """What was pickled by `dumps`; imports modules as needed.

    Raises:
        LookupError: an object is not in its place here.
    """
    return _Unpickler(io.BytesIO(content)).load()


def at(place: Place) -> Any:
    """The object there.

    Raises:
        LookupError: there is none.
    """
    module, names = place
    found = importlib.import_module(module)
    for name in names:
        try:
            found = attributes(found)[name]
        except KeyError:
            raise LookupError(f"{'.'.join((module, *names))} is not there: no {name}") from None
    return found


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, places: Mapping[int, Place]) -> None:
        super().__init__(file)
        self._places = places

    def persistent_id(self, value: Any) -> Place | None:
        return self._places.get(id(value))

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, ModuleType) and sys.modules.get(value.__name__) is value:
            return importlib.import_module, (value.__name__,)  # cloudpickle does not know torch's own kinds
        return super().reducer_override(value)


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, place: Place) -> Any:
        return at(place)


@contextlib.contextmanager
def _by_value(value: Any, own: str | None) -> Iterator[None]:
    """Else cloudpickle names a function or class that has taken the place of another one of its name."""
    if (
        own is None
        or not issubclass(type(value), type | FunctionType)
        or getattr(value, "__module__", None) != own
    ):
        yield
        return
    cloudpickle.register_pickle_by_value(sys.modules[own])
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[own])
