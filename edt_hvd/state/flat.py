"""A tree of tensors and plain values as bytes: a pickled skeleton, and all tensors one behind the other."""

import pickle
import zlib
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

ALIGNMENT = 64
"""Bytes at whose multiples tensors begin, so that they can be used where they lie."""


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

    def _refer_to(self, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor) or leaf.layout != torch.strided or leaf.is_quantized:
            return leaf
        offset = self.size
        self._tensors.append((offset, leaf))
        self.size = offset + _aligned(leaf.nbytes)
        return TensorRef(tuple(leaf.shape), leaf.dtype, offset)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def read(skeleton: torch.Tensor, tensors: torch.Tensor) -> Any:
    """The tree that a `FlatTree` was made of.

    Args:
        skeleton: uint8, what `FlatTree.skeleton` gave.
        tensors: uint8, in host memory, aligned; the tree's tensors are views of it.
    """

    def find(leaf: Any) -> Any:
        if not isinstance(leaf, TensorRef):
            return leaf
        count = torch.Size(leaf.shape).numel() * leaf.dtype.itemsize
        return tensors[leaf.offset : leaf.offset + count].view(leaf.dtype).view(leaf.shape)

    return pytree.tree_map(find, pickle.loads(skeleton.numpy().tobytes()))
