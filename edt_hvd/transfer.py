"""Bringing a tree of tensors and plain values from rank 0 to everybody in a few large transfers."""

from dataclasses import dataclass
from typing import Any

import horovod.torch as hvd
import torch
from torch.utils import _pytree as pytree


@dataclass(frozen=True)
class _Place:
    """Stands in the tree's skeleton for a tensor that travels in the flat buffer of its dtype."""

    shape: tuple[int, ...]
    dtype: torch.dtype


def broadcast_tree(tree: Any) -> Any:
    """Rank 0's `tree` on every worker. A collective.

    The containers and plain values travel pickled, the tensors as one flat buffer a dtype.

    Args:
        tree: nested dicts, lists and tuples; leaves are tensors or picklable. Only rank 0's counts.

    Returns:
        On rank 0 `tree` itself, elsewhere an equal tree, its tensors in host memory.
    """
    is_root = hvd.rank() == 0
    tensors = [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)] if is_root else []
    skeleton = pytree.tree_map(_describe, tree) if is_root else None
    skeleton = hvd.broadcast_object(skeleton, root_rank=0, name="edt.state.skeleton")
    leaves, structure = pytree.tree_flatten(skeleton)
    places = [leaf for leaf in leaves if isinstance(leaf, _Place)]
    received: dict[torch.dtype, list[torch.Tensor]] = {}
    for dtype in dict.fromkeys(place.dtype for place in places):
        own = [tensor for tensor in tensors if tensor.dtype == dtype]
        received[dtype] = _broadcast_flat(dtype, [place for place in places if place.dtype == dtype], own)
    if is_root:
        return tree
    streams = {dtype: iter(parts) for dtype, parts in received.items()}
    filled = [next(streams[leaf.dtype]) if isinstance(leaf, _Place) else leaf for leaf in leaves]
    return pytree.tree_unflatten(filled, structure)


def _describe(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return _Place(tuple(leaf.shape), leaf.dtype)
    return leaf


def _broadcast_flat(dtype: torch.dtype, places: list[_Place], own: list[torch.Tensor]) -> list[torch.Tensor]:
    sizes = [torch.Size(place.shape).numel() for place in places]
    if own:
        flat = torch.cat([tensor.detach().reshape(-1).cpu() for tensor in own])
    else:
        flat = torch.empty(sum(sizes), dtype=dtype)
    as_bytes = flat.view(torch.uint8) if flat.numel() else flat
    if as_bytes.numel():
        hvd.broadcast_(as_bytes, root_rank=0, name=f"edt.state.{dtype}")
    parts = flat.split(sizes)  # type: ignore[no-untyped-call]
    return [part.view(place.shape) for part, place in zip(parts, places, strict=True)]
