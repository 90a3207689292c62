"""Digests of values: equal exactly when the bits are, in every process."""

import enum
import hashlib
import itertools
import pickle
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch

PLAIN = (int, float, complex, str, bytes, bool, type(None), enum.Enum, torch.dtype, torch.device)
"""Types whose `repr` is the whole value, in every process."""


SHOWN = 3
"""Elements and parts of a value that a message has."""

LONGEST_TEXT = 2000
"""Characters of a part's text, at most, for what its digest follows."""

MAX_PARTS = 32
"""Elements of a nest whose parts are told apart, at most."""


def digest(value: Any) -> str:
    """A digest of a tensor, an array, a plain value, or any nest of them.

    Objects count by their attributes, or by their pickled form when they have none. What cannot be pickled
    counts by name only: a lambda or local function by its own qualified name, anything else by its type's.
    A tensor of a layout that has no bytes of its own counts by shape and type only.
    """
    return _Digest().of(value)


def shape_digest(tensor: torch.Tensor) -> str:
    """A digest of a tensor's type and shape, for a tensor whose content is undefined."""
    return digest(("tensor", str(tensor.dtype), tuple(tensor.shape)))


class _Digest:
    def __init__(self) -> None:
        self._state = hashlib.blake2b(digest_size=8)
        self._open: list[int] = []

    def of(self, value: Any) -> str:
        self._feed(value)
        return self._state.hexdigest()

    def _feed(self, value: Any) -> None:
        if isinstance(value, PLAIN):
            self._text(f"{type(value).__name__} {value!r}")
        elif isinstance(value, torch.Tensor):
            self._tensor(value)
        elif isinstance(value, np.ndarray | np.generic) and not value.dtype.hasobject:
            self._text(f"array {value.dtype} {value.shape}")
            self._state.update(np.ascontiguousarray(value).tobytes())
        elif hasattr(type(value), "__array_interface__"):  # images of Pillow, whose attributes say little
            self._feed(np.asarray(value))
        elif isinstance(value, Mapping):
            self._nest("mapping", value, _flat(value))
        elif isinstance(value, set | frozenset):
            self._nest("set", value, sorted(map(digest, value)))
        elif isinstance(value, list | tuple):
            self._nest("sequence", value, value)
        elif getattr(value, "__dict__", None):
            self._nest(type(value).__qualname__, value, _flat(vars(value)))
        else:
            self._pickled(value)

    def _pickled(self, value: Any) -> None:
        try:
            pickled = pickle.dumps(value)
        except Exception:  # noqa: BLE001 - objects refuse with exceptions of any type
            self._text(f"unpicklable {getattr(value, '__qualname__', type(value).__qualname__)}")
        else:
            self._state.update(pickled)

    def _text(self, text: str) -> None:
        encoded = text.encode("utf-8", "surrogatepass")
        self._state.update(len(encoded).to_bytes(8, "big") + encoded)

    def _nest(self, kind: str, value: Any, parts: Iterable[Any]) -> None:
        if id(value) in self._open:  # it contains itself
            self._text(f"{kind} {len(self._open) - self._open.index(id(value))} above")
            return
        self._open.append(id(value))
        self._text(f"{kind} (")
        for part in parts:
            self._feed(part)
        self._text(")")
        self._open.pop()

    def _tensor(self, tensor: torch.Tensor) -> None:
        self._text(f"tensor {tensor.dtype} {tuple(tensor.shape)} {tensor.layout}")
        if tensor.layout is torch.sparse_coo:
            self._tensor(tensor._indices())
            self._tensor(tensor._values())
        elif tensor.layout is torch.strided and not tensor.is_meta:
            flat = tensor.detach().resolve_conj().resolve_neg().cpu().reshape(-1)
            packed = flat if flat.stride() == (1,) else flat.clone(memory_format=torch.contiguous_format)
            self._state.update(packed.view(torch.uint8).numpy().data)


def _flat(mapping: Mapping[Any, Any]) -> Iterable[Any]:
    return (part for item in mapping.items() for part in item)


def shown(value: Any) -> str:
    """A value for a message: of a tensor its form and first elements, of a nest its first parts."""
    if hasattr(type(value), "__array_interface__"):  # images of Pillow, too
        value = np.asarray(value)
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        dtype = str(value.dtype).removeprefix("torch.")
        if isinstance(value, torch.Tensor) and (value.layout is not torch.strided or value.is_meta):
            return f"{dtype}{list(value.shape)}"
        flat = value.reshape(-1)
        return f"{dtype}{list(value.shape)} of {_first(map(_number, flat[: SHOWN + 1].tolist()))}"
    if isinstance(value, PLAIN):
        return reprlib.repr(value)
    if isinstance(value, Mapping):
        return f"{{{_first(f'{shown(key)}: {shown(item)}' for key, item in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"({_first(map(shown, value))})"
    return f"a {type(value).__qualname__}"


def parts_of(value: Any) -> dict[str, str]:
    """The parts of a nest, as texts that are equal where the bits are.

    Returns:
        The texts by what follows a name of the value in Python: ``""`` for the value itself, which comes
        last, ``[1]``, ``['path']``, ``.label``.
    """
    return dict(_parts(value, "", []))


def _parts(value: Any, label: str, above: list[int]) -> Iterator[tuple[str, str]]:
    if isinstance(value, PLAIN):
        text = repr(value)
        yield label, text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}... ({digest(value)})"
        return
    if id(value) not in above:  # it does not contain itself
        for suffix, part in _elements(value):
            yield from _parts(part, f"{label}{suffix}", [*above, id(value)])
    yield label, f"{shown(value)} ({digest(value)})"


def _elements(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, torch.Tensor | np.ndarray | np.generic):
        found = []
    elif isinstance(value, Mapping):
        found = [(f"[{shown(key)}]", part) for key, part in value.items()]
    elif isinstance(value, list | tuple):
        found = [(f"[{number}]", part) for number, part in enumerate(value)]
    else:
        found = [(f".{name}", part) for name, part in getattr(value, "__dict__", {}).items()]
    return found if len(found) <= MAX_PARTS else []


def _number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _first(parts: Iterable[str]) -> str:
    found = list(itertools.islice(parts, SHOWN + 1))
    return ", ".join([*found[:SHOWN], *(["..."] if len(found) > SHOWN else [])])
