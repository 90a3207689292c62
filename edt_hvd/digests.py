"""Digests of values: equal exactly when the bits are, in every process."""

import dataclasses
import hashlib
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

PLAIN = (int, float, complex, str, bytes, bool, type(None), torch.dtype, torch.device)
"""Types whose `repr` tells the whole value, whatever the process."""


def digest(value: Any) -> str:
    """A digest of a tensor, an array, a plain value, or any nest of them.

    Objects count by their attributes, or by their pickled form when they have none; a tensor of a layout
    that has no bytes of its own counts by shape and type only.
    """
    state = hashlib.blake2b(digest_size=8)
    _feed(state, value)
    return state.hexdigest()


def shape_digest(tensor: torch.Tensor) -> str:
    """A digest of a tensor's type and shape, for one whose content is of no meaning."""
    return digest(("tensor", str(tensor.dtype), tuple(tensor.shape)))


def _feed(state: "hashlib.blake2b", value: Any) -> None:
    if isinstance(value, PLAIN):
        _feed_text(state, f"{type(value).__name__} {value!r}")
    elif isinstance(value, torch.Tensor):
        _feed_tensor(state, value)
    elif isinstance(value, np.ndarray | np.generic) and not np.asarray(value).dtype.hasobject:
        _feed_text(state, f"array {value.dtype} {value.shape}")
        state.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, Mapping):
        _feed_all(state, "mapping", (part for item in value.items() for part in item))
    elif isinstance(value, set | frozenset):
        _feed_all(state, "set", sorted(map(digest, value)))
    elif isinstance(value, list | tuple):
        _feed_all(state, "sequence", value)
    elif dataclasses.is_dataclass(value) or getattr(value, "__dict__", None):
        _feed_all(state, type(value).__qualname__, (part for item in vars(value).items() for part in item))
    else:
        state.update(pickle.dumps(value))


def _feed_text(state: "hashlib.blake2b", text: str) -> None:
    encoded = text.encode("utf-8", "surrogatepass")
    state.update(len(encoded).to_bytes(8, "big") + encoded)


def _feed_all(state: "hashlib.blake2b", kind: str, parts: Iterable[Any]) -> None:
    _feed_text(state, f"{kind} (")
    for part in parts:
        _feed(state, part)
    _feed_text(state, ")")


def _feed_tensor(state: "hashlib.blake2b", tensor: torch.Tensor) -> None:
    _feed_text(state, f"tensor {tensor.dtype} {tuple(tensor.shape)} {tensor.layout}")
    if tensor.layout is torch.sparse_coo:
        _feed_tensor(state, tensor._indices())
        _feed_tensor(state, tensor._values())
    elif tensor.layout is torch.strided and not tensor.is_meta:
        plain = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
        state.update(plain.reshape(-1).view(torch.uint8).numpy().data)
