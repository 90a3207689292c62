"""Where an object is among the arguments of a training, for messages."""

import collections
import functools
import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any

import cloudpickle
import torch

from edt_hvd.wmla.pickling.own_modules import is_own


def refusal(path: list[tuple[str, Any]], reason: Exception) -> str:
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


def path_to(wanted: Any, roots: Mapping[str, Any], own: Mapping[int, str]) -> list[tuple[str, Any]] | None:
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
