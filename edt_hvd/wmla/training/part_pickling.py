"""Pickles without the parts that every executor has its own of, such as the model: they refer to these."""

import hashlib
import io
import pickle
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import IO, Any

import numpy as np
import torch
from typing_extensions import override

import edt_hvd
from edt_hvd.wmla.training.variables import Variable


class ViewError(pickle.PicklingError):
    """A value views what is trained, which every executor has."""


class PartPickler(pickle.Pickler):
    """Refers to parts by number, to variables by name, and takes tensors from their GPU.

    Args:
        file: to write to.
        references: what stands for an object, by its ``id``.
        memory: `memory_of` what is trained.

    Raises:
        ViewError: a value shares memory with what is trained.
    """

    def __init__(
        self, file: IO[bytes], references: Mapping[int, int | Variable], memory: AbstractSet[int]
    ) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._references, self._memory = references, memory

    @override
    def persistent_id(self, value: Any) -> int | tuple[str, ...] | None:
        found = self._references.get(id(value))
        return tuple(found) if isinstance(found, Variable) else found

    @override
    def reducer_override(self, value: Any) -> Any:
        if _memory(value) in self._memory:
            raise ViewError
        if isinstance(value, torch.Tensor) and value.device.type == "cuda":
            return _on_device, (value.detach().cpu(),)
        return NotImplemented


class PartUnpickler(pickle.Unpickler):
    """Puts in this executor's own of what is referred to, which `present` gives."""

    def __init__(self, file: io.BytesIO, present: Callable[[Any], Any]) -> None:
        super().__init__(file)
        self.persistent_load = present  # type: ignore[method-assign]


class DigestFile:
    """A file that keeps a digest of what is written."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self.digest, self.write = self._hash.digest, self._hash.update


def memory_of(values: Iterable[Any]) -> set[int]:
    """Where the memory of the tensors among the values begins."""
    return set(map(_memory, values)) - {0}


def _memory(value: Any) -> int:
    """Where the memory of a tensor, or of an array that views one, begins; 0 if there is none."""
    while isinstance(value, np.ndarray):
        value = value.base
    dense = isinstance(value, torch.Tensor) and value.layout == torch.strided
    return value.untyped_storage().data_ptr() if dense else 0


def _on_device(value: torch.Tensor) -> torch.Tensor:
    return value.to(edt_hvd.device())
