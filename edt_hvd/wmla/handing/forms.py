"""What values are known by, to see whether they have been changed in place."""

import argparse
import contextlib
import hashlib
import weakref
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from enum import Enum
from pathlib import PurePath
from types import FunctionType, MemberDescriptorType, ModuleType, NoneType, SimpleNamespace
from typing import Any

import numpy as np
import torch

ATOMS = (bool, int, float, complex, NoneType, str, bytes)
_ATOMS = frozenset(map(id, ATOMS))
MAPPINGS = (OrderedDict, dict)
SEQUENCES = (list, tuple, deque)
SETS = (set, frozenset)
CONTAINERS = (*MAPPINGS, *SEQUENCES, *SETS)
SEEN_INTO: Sequence[type] = (*CONTAINERS, defaultdict, Counter, argparse.Namespace, SimpleNamespace)
"""Types whose objects are compared by what is in them, besides the script's own."""

_SEEN_INTO = frozenset(map(id, SEEN_INTO))

TORCH_S_OWN = vars(torch.nn.Module()).keys() - {"training"}
"""Attributes in which a torch module keeps tensors, layers and hooks."""

IMMUTABLE = (*ATOMS, PurePath, tuple, frozenset)
"""What is the same wherever it is."""

LIMIT = 10_000
"""Objects in a value; what has more is no setting."""

DEPTH = 100
"""Objects in objects."""

ARRAY_LIMIT = 2**20
"""Bytes of an array or tensor in it."""


class Same:
    """An object that equals itself alone. Does not keep it alive, but for containers, numbers and texts."""

    __slots__ = ("_hash", "_strong", "_weak")

    def __init__(self, value: Any) -> None:
        self._hash = id(value)
        self._strong = self._weak = None
        try:
            self._weak = weakref.ref(value)
        except TypeError:
            self._strong = value

    def get(self) -> Any:
        """The object; one that nobody has, if it is no more."""
        if self._weak is None:
            return self._strong
        value = self._weak()
        return object() if value is None else value

    def is_of(self, value: Any) -> bool:
        """Whether it is this object."""
        return self.get() is value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.get() is other.get()

    def __hash__(self) -> int:
        return self._hash


class Forms:
    """Makes forms of objects.

    Args:
        is_own: whether a class is the script's.

    Attributes:
        seen: the number of objects that have been looked at.
    """

    def __init__(self, is_own: Callable[[type], bool]) -> None:
        self._is_own = is_own
        self.seen = 0

    def of(self, value: Any) -> Hashable:
        """Equal forms of an object, one taken before the other: as far as one can see, it has not changed.

        Sees into containers, namespaces, arrays, tensors, modules of torch, and objects of the script's
        classes; of large tensors it knows the version. What else there is in them, and what is too large, is
        known by its identity.
        """
        form = _Form(self._is_own)
        try:
            return form.of(value)
        except Exception:  # noqa: BLE001 - too large or deep, or it raises what it likes when it is looked at
            return Same(value)
        finally:
            self.seen += LIMIT - form.left


def is_plain_object(value: Any, is_own: Callable[[type], bool]) -> bool:
    """Whether all that there is to an object of the script's classes are its attributes."""
    kind = type(value)
    return (
        is_own(kind)
        and not issubclass(kind, (type, Enum, np.ndarray, torch.Tensor, torch.nn.Module, *CONTAINERS))
        and all(is_own(base) or "__init__" not in vars(base) for base in kind.__mro__[:-1])
    )


def reached(value: Any, is_own: Callable[[type], bool]) -> Iterator[Any]:
    """An object and all that `form` sees in it; of what it does not see into, the attributes."""
    waiting, seen = [value], set[int]()
    while waiting and len(seen) < LIMIT:
        each = waiting.pop()
        if id(each) in seen or id(type(each)) in _ATOMS:
            continue
        seen.add(id(each))
        yield each
        kind = type(each)
        if id(kind) in _SEEN_INTO or is_own(kind) or issubclass(kind, torch.nn.Module):
            waiting += [*_contents(each), *attributes(each).values()]
        elif not issubclass(kind, type | FunctionType | ModuleType):
            yield from _dict(each).values()


def attributes(owner: Any) -> dict[str, Any]:
    """The attributes that a module, class or object has itself, those in slots too."""
    if issubclass(type(owner), type | ModuleType):
        return dict(vars(owner))
    found = {name: value for name, value in _dict(owner).items() if type(name) is str}
    for name, slot in _slots(type(owner)):
        with contextlib.suppress(AttributeError):  # it is empty
            found[name] = slot.__get__(owner)
    return found


def put(owner: Any, name: str, value: Any) -> None:
    """Set an object's attribute, whatever its class would do then."""
    slot = dict(_slots(type(owner))).get(name)
    if slot is None:
        _dict(owner)[name] = value
    else:
        slot.__set__(owner, value)


def _dict(owner: Any) -> dict[str, Any]:
    try:
        found: dict[str, Any] = object.__getattribute__(owner, "__dict__")
    except Exception:  # noqa: BLE001 - it has none, or a proxy of something that is not there
        return {}
    return found


def _slots(kind: type) -> Iterator[tuple[str, MemberDescriptorType]]:
    for base in kind.__mro__:
        if "__slots__" in vars(base):
            yield from ((n, each) for n, each in vars(base).items() if type(each) is MemberDescriptorType)


class _TooLargeError(Exception):
    pass


class _Form:
    """Asks no object's own methods, nor its type's: they may fail, or do more than tell."""

    def __init__(self, is_own: Callable[[type], bool]) -> None:
        self._is_own = is_own
        self.left = LIMIT
        self._depth = 0
        self._seen: set[int] = set()

    def of(self, value: Any) -> Hashable:
        self.left -= 1
        if self.left < 0:
            raise _TooLargeError
        kind = type(value)
        if kind is float or kind is complex:
            return kind, repr(value)
        if id(kind) in _ATOMS or issubclass(kind, PurePath):
            return kind, value
        if issubclass(kind, type | Enum) or id(value) in self._seen:
            return Same(value)
        self._seen.add(id(value))
        if issubclass(kind, np.ndarray):
            return _array(value)
        if issubclass(kind, torch.Tensor):
            return _tensor(value)
        if issubclass(kind, torch.nn.Module):
            return tuple(self._layer(layer) for layer in layers(value))
        if id(kind) in _SEEN_INTO or self._is_own(kind):
            return self._inside(kind, value)
        return Same(value)

    def _inside(self, kind: type, value: Any) -> Hashable:
        self._depth += 1
        if self._depth > DEPTH:
            raise _TooLargeError
        gather: type = frozenset if issubclass(kind, SETS) else tuple
        inner = Same(kind), gather(map(self.of, _contents(value))), self._named(attributes(value))
        self._depth -= 1
        return inner

    def _named(self, attributes: Mapping[str, Any]) -> Hashable:
        return tuple((name, self.of(value)) for name, value in attributes.items())

    def _layer(self, layer: torch.nn.Module) -> Hashable:
        return Same(layer), self._named(tensors(layer)), self._named(settings(layer))


def _contents(value: Any) -> list[Any]:
    """What is in a container, as the built-in ones have it; of mappings the keys and values in turn."""
    kind = type(value)
    for mapping in MAPPINGS:
        if issubclass(kind, mapping):
            return [each for pair in mapping.items(value) for each in pair]
    containers: Sequence[Any] = (*SEQUENCES, *SETS)
    for container in containers:
        if issubclass(kind, container):
            return list(container.__iter__(value))
    return []


def layers(module: torch.nn.Module) -> list[torch.nn.Module]:
    """A torch module and all that are in it, each once, in their order."""
    found, seen = [module], {id(module), id(None)}
    for layer in found:  # it grows meanwhile
        for inner in vars(layer).get("_modules", {}).values():
            if id(inner) not in seen:
                seen.add(id(inner))
                found.append(inner)
    return found


def tensors(layer: torch.nn.Module) -> dict[str, Any]:
    """A layer's own parameters and buffers, None for those that it is without."""
    return {**vars(layer).get("_parameters", {}), **vars(layer).get("_buffers", {})}


def settings(layer: torch.nn.Module) -> dict[str, Any]:
    """A layer's own attributes that are neither tensors, layers nor hooks."""
    return {name: value for name, value in vars(layer).items() if name not in TORCH_S_OWN}


def _array(value: "np.ndarray[Any, Any]") -> Hashable:
    if value.dtype.hasobject or value.nbytes > ARRAY_LIMIT:
        return Same(value)
    return str(value.dtype), value.shape, hashlib.sha256(value.tobytes()).digest()


def _tensor(value: torch.Tensor) -> Hashable:
    if torch.nn.parameter.is_lazy(value):
        return Same(value)
    known = Same(value), value.dtype, value.requires_grad
    if value.layout != torch.strided or value.is_meta or value.is_quantized or value.nbytes > ARRAY_LIMIT:
        return *known, None if value.is_inference() else value._version
    content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
    return *known, tuple(value.shape), hashlib.sha256(content.tobytes()).digest()
