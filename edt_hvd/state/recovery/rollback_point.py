"""The copy of what is small in a state, taken at every commit.

Large tensors of modules are left out of it: causal masks, frozen teachers, averages of the weights. Whether
they have changed is asked only when the copy is needed. A parameter to which torch has counted writes since
the last full copy, but none since the commit, is still the commit's. Anything else is compared with the full
copy: torch does not count writes through ``.data``, and those of batch norm to its statistics.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Any

import torch

from edt_hvd.reduction.grad_modes import version_of
from edt_hvd.state.snapshot import copied, tensor_bytes

ROLLBACK_POINT_BYTES = 2**20
"""Bytes of tensors, at most, that are copied at every commit."""

Key = tuple[str, str]
"""Names of a module in the state, and of a tensor in it."""


@dataclass(frozen=True)
class LeftOut:
    """A tensor as of a commit.

    Attributes:
        tensor: shares its memory, which is therefore nobody else's as long as this is kept.
        version: how often torch had counted a write to it.
    """

    tensor: torch.Tensor
    version: int

    def is_at(self, now: torch.Tensor) -> bool:
        """Whether `now` is the same tensor."""
        return self.tensor.data_ptr() == now.data_ptr() and self.tensor.shape == now.shape


@dataclass(frozen=True)
class RollbackPoint:
    """The small part of a state, as of a commit.

    Attributes:
        tree: copies.
        left_out: the large tensors.
        parameters: names of parameters that may be among them.
        parameters_with_tracked_writes: those of them whose version torch has raised between two commits
            since the last full copy.
    """

    tree: dict[str, Any]
    left_out: dict[Key, LeftOut]
    parameters: frozenset[Key]
    parameters_with_tracked_writes: frozenset[Key]

    @classmethod
    def of(
        cls,
        small: dict[str, Any],
        large: Iterable[Key],
        parameters: frozenset[Key] = frozenset(),
        parameters_with_tracked_writes: frozenset[Key] = frozenset(),
    ) -> "RollbackPoint":
        """Copy a tree, but for the tensors that `large_of` has named.

        Args:
            small: the tree, by the names of a state.
            large: what to leave out.
            parameters: names of parameters in it.
            parameters_with_tracked_writes: see the class.
        """
        left_out = {
            (name, key): LeftOut(small[name][key].detach(), version_of(small[name][key]))
            for name, key in large
            if key in small[name]
        }
        owners = {owner for owner, _ in left_out}
        rest = {
            name: {key: value for key, value in part.items() if (name, key) not in left_out}
            if name in owners
            else part
            for name, part in small.items()
        }
        return cls(copied(rest), left_out, parameters, parameters_with_tracked_writes)

    def next(self, small: dict[str, Any]) -> "RollbackPoint":
        """The rollback point of the next commit."""
        found = RollbackPoint.of(small, self.left_out, self.parameters)
        tracked = {
            key
            for key, now in found.left_out.items()
            if key in self.parameters
            and now.version > self.left_out[key].version
            and self.left_out[key].is_at(now.tensor)
        }
        return replace(
            found,
            parameters_with_tracked_writes=self.parameters_with_tracked_writes | tracked,
        )

    def completed(self, small: dict[str, Any], full: dict[str, Any] | None) -> dict[str, Any] | None:
        """The tree as it was at the commit.

        Args:
            small: the present tree.
            full: a full copy of the same commit or an earlier one.

        Returns:
            None if what was left out may have changed, and the full copy does not have it.
        """
        tree = dict(self.tree)
        for (name, key), then in self.left_out.items():
            now, copy = small[name].get(key), full.get(name, {}).get(key) if full else None
            if now is None or version_of(now) != then.version:
                return None
            if not ((name, key) in self.parameters_with_tracked_writes and then.is_at(now)):
                if copy is None or not _same_bits(now, copy):
                    return None
                now = copy
            tree[name] = tree[name] | {key: now}
        return tree


def large_of(small: dict[str, Any], modules: AbstractSet[str]) -> frozenset[Key] | None:
    """The largest tensors of modules, without which the rest fits into `ROLLBACK_POINT_BYTES`.

    Args:
        small: what is copied at every commit, by the names of a state.
        modules: names under which it has tensors of modules, each by its name.

    Returns:
        None if the rest never fits.
    """
    excess = tensor_bytes(small) - ROLLBACK_POINT_BYTES
    sizes = {
        (name, key): value.nbytes
        for name in modules
        for key, value in small[name].items()
        if isinstance(value, torch.Tensor) and value.layout == torch.strided
    }
    large: set[Key] = set()
    for key in sorted(sizes, key=lambda key: (-sizes[key], key)):
        if excess <= 0:
            break
        large.add(key)
        excess -= sizes[key]
    return frozenset(large) if excess <= 0 else None


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    if left.shape != right.shape or left.dtype != right.dtype:
        return False
    flat = (tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8) for tensor in (left, right))
    return torch.equal(*flat)
