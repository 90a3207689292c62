"""The copy of what is small in a state, taken at every commit.

Large buffers, such as causal masks, are left out of it: most of them never change. Whether they have changed
is asked only when the copy is needed, by comparing them with the last full copy.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

import torch

from edt_hvd.snapshot import copied, tensor_bytes

BOUNDARY_BYTES = 2**20
"""Bytes of tensors, at most, that are copied at every commit."""

Key = tuple[str, str]
"""Names of a module in the state, and of a buffer in it."""


@dataclass(frozen=True)
class Boundary:
    """What is small, as of a commit.

    Attributes:
        tree: copies.
        versions: of the buffers that were left out: how often torch has counted a write to each.
    """

    tree: dict[str, Any]
    versions: dict[Key, int]

    @classmethod
    def of(cls, small: dict[str, Any], large: AbstractSet[Key]) -> "Boundary":
        """Copy a tree, but for the buffers that `large_of` has named."""
        if not large:
            return cls(copied(small), {})
        versions = {(name, key): small[name][key]._version for name, key in large if key in small[name]}
        rest = {
            name: {key: value for key, value in part.items() if (name, key) not in large}
            if any(name == owner for owner, _ in large)
            else part
            for name, part in small.items()
        }
        return cls(copied(rest), versions)

    def completed(self, small: dict[str, Any], full: dict[str, Any] | None) -> dict[str, Any] | None:
        """The tree as it was at the commit.

        Args:
            small: the present tree.
            full: a full copy of the same commit or an earlier one.

        Returns:
            None if a buffer that was left out may have changed since the full copy.
        """
        tree = dict(self.tree)
        for (name, key), version in self.versions.items():
            now, then = small[name].get(key), full.get(name, {}).get(key) if full else None
            if now is None or then is None or now._version != version or not _same_bits(now, then):
                return None
            tree[name] = tree[name] | {key: then}
        return tree


def large_of(small: dict[str, Any], modules: AbstractSet[str]) -> frozenset[Key] | None:
    """The largest buffers, without which the rest fits into `BOUNDARY_BYTES`.

    Args:
        small: what is copied at every commit, by the names of a state.
        modules: names of those of which it has the buffers alone, each by its name.

    Returns:
        None if the rest never fits.
    """
    excess = tensor_bytes(small) - BOUNDARY_BYTES
    sizes = {
        (name, key): value.nbytes
        for name in modules
        for key, value in small[name].items()
        if isinstance(value, torch.Tensor) and value.layout == torch.strided
    }
    large: set[Key] = set()
    for place in sorted(sizes, key=lambda place: (-sizes[place], place)):
        if excess <= 0:
            break
        large.add(place)
        excess -= sizes[place]
    return frozenset(large) if excess <= 0 else None


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    flat = (tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for tensor in (left, right))
    return torch.equal(*flat)
