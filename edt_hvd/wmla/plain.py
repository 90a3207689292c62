"""Plain data, such as settings: what can be compared with what it was before, and be changed in place."""

import argparse
import hashlib
from collections.abc import Callable, Hashable, Iterator
from enum import Enum
from pathlib import PurePath
from types import NoneType, SimpleNamespace
from typing import Any

import numpy as np

ATOMS = (bool, int, float, complex, str, bytes, NoneType)
SPACES = (argparse.Namespace, SimpleNamespace)
LIMIT = 100_000
"""Values in a value; what has more is no setting."""

ARRAY_LIMIT = 2**20
"""Bytes of an array in it."""


class NotPlainError(Exception):
    """It has something in it that cannot be compared."""


def form(value: Any, is_own: Callable[[type], bool]) -> Hashable:
    """What a value is known by: equal forms, equal values.

    Args:
        value: atoms, paths, members of enumerations, small arrays, namespaces, and containers of such.
        is_own: whether objects of a class are compared by their attributes.

    Raises:
        NotPlainError: it is something else, too large, or contains itself.
    """
    try:
        return _form(value, is_own, iter(range(LIMIT)))
    except RecursionError:
        raise NotPlainError from None


def _form(value: Any, is_own: Callable[[type], bool], left: Iterator[int]) -> Hashable:
    if next(left, None) is None:
        raise NotPlainError
    kind = type(value)
    if kind in ATOMS or isinstance(value, PurePath | Enum):
        return kind, repr(value)
    if kind in (list, tuple):
        return kind, tuple(_form(each, is_own, left) for each in value)
    if kind in (set, frozenset):
        return kind, frozenset(_form(each, is_own, left) for each in value)
    if kind is dict:
        return kind, tuple((_form(k, is_own, left), _form(v, is_own, left)) for k, v in value.items())
    if kind is np.ndarray and not value.dtype.hasobject and value.nbytes <= ARRAY_LIMIT:
        return str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).digest()
    if kind in SPACES or (is_own(kind) and hasattr(value, "__dict__")):
        return kind, _form(dict(vars(value)), is_own, left)
    raise NotPlainError


def put(owner: Any, name: str, value: Any) -> None:
    """Set an attribute; an object of the same kind is changed, so that all who have it see it."""
    present: Any = getattr(owner, name, None)
    if type(present) is not type(value) or isinstance(owner, type):
        setattr(owner, name, value)
    elif isinstance(present, list):
        present[:] = value
    elif isinstance(present, dict | set):
        present.clear()
        present.update(value)
    elif type(value).__module__ != "builtins" and hasattr(value, "__dict__") and not isinstance(value, type):
        vars(present).clear()
        vars(present).update(vars(value))
    else:
        setattr(owner, name, value)
