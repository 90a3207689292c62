"""A tree of tensors and plain values as bytes: a pickled skeleton, and all tensors one behind the other."""

import pickle
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

ALIGNMENT = 64
"""Bytes at whose multiples tensors begin."""

OWN_PIECE = 2**20
"""Bytes from which on a tensor is in pieces of its own, which can be sent from where it is."""


@dataclass(frozen=True)
class TensorRef:
    """Stands in the skeleton for a tensor: its form, and where among the tensors' bytes it begins."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    offset: int


class FlatTree:
    """A tree in its flat form. Nothing is copied until `write` is called.

    Args:
        tree: nested dicts, lists and tuples; leaves are tensors, on any device, or picklable.

    Attributes:
        size: bytes that all tensors take.
        layout: a checksum of where which tensor lies, by its path in the tree; equal trees have equal ones on
            every worker.
    """

    def __init__(self, tree: Any) -> None:
        self._tensors: list[tuple[int, torch.Tensor]] = []
        self.size = 0
        leaves, structure = pytree.tree_flatten_with_path(tree)
        refs = [self._refer_to(leaf) for _, leaf in leaves]
        self._skeleton = pytree.tree_unflatten(refs, structure)
        form = [
            (pytree.keystr(path), ref.offset, ref.shape, str(ref.dtype))
            for (path, _), ref in zip(leaves, refs, strict=True)
            if isinstance(ref, TensorRef)
        ]
        self.layout = zlib.crc32(repr(form).encode())

    def skeleton(self) -> bytes:
        """The containers and plain values, pickled and filled up to a multiple of `ALIGNMENT`."""
        pickled = pickle.dumps(self._skeleton, protocol=pickle.HIGHEST_PROTOCOL)
        return pickled.ljust(_aligned(len(pickled)), b"\0")

    def write(self, into: torch.Tensor, start: int) -> None:
        """Copy the tensors' bytes from `start` on.

        Args:
            into: uint8, in host memory; its length says how many.
            start: index of the first byte.
        """
        stop = start + into.numel()
        for offset, tensor in self._tensors:
            first, last = max(start, offset), min(stop, offset + tensor.nbytes)
            if first < last:
                own = tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
                into[first - start : last - start].copy_(own[first - offset : last - offset])

    def fill(self, piece: torch.Tensor, start: int) -> None:
        """Copy bytes from `start` on into the tensors; the counterpart of `write`."""
        stop = start + piece.numel()
        for offset, tensor in self._tensors:
            first, last = max(start, offset), min(stop, offset + tensor.nbytes)
            if first < last:
                own = tensor.view(-1).view(torch.uint8)
                own[first - offset : last - offset].copy_(piece[first - start : last - start])

    def pieces(self, size: int) -> Iterator[tuple[range, torch.Tensor | None]]:
        """All bytes in parts of `size`, a multiple of `ALIGNMENT`, at most; the same for equal layouts.

        Beside each the memory where it lies, as bytes; None for several small tensors, or where a tensor is
        on a GPU or not contiguous.
        """
        done = 0
        for offset, tensor in self._tensors:
            if tensor.nbytes < OWN_PIECE:
                continue
            yield from ((part, None) for part in _cut(range(done, offset), size))
            memory = None
            if tensor.is_cpu and tensor.is_contiguous():
                memory = tensor.detach().view(-1).view(torch.uint8)
            for part in _cut(range(tensor.nbytes), size):
                found = None if memory is None else memory[part.start : part.stop]
                yield range(offset + part.start, offset + part.stop), found
            done = offset + _aligned(tensor.nbytes)
        yield from ((part, None) for part in _cut(range(done, self.size), size))

    def _refer_to(self, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.layout != torch.strided or leaf.is_quantized:
            return leaf
        offset = self.size
        self._tensors.append((offset, leaf))
        self.size = offset + _aligned(leaf.nbytes)
        return TensorRef(tuple(leaf.shape), leaf.dtype, offset)


def _cut(whole: range, size: int) -> Iterator[range]:
    return (whole[start : start + size] for start in range(0, len(whole), size))


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def empty(skeleton: bytes) -> Any:
    """A tree like the one that a skeleton is of, its tensors in host memory and not yet filled.

    It has the same layout.
    """

    def find(leaf: Any) -> Any:
        if not isinstance(leaf, TensorRef):
            return leaf
        return torch.empty(leaf.shape, dtype=leaf.dtype, device="cpu")

    return pytree.tree_map(find, pickle.loads(skeleton))
