"""Full copies of a state in host memory, in buffers that are reused."""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

SNAPSHOT_SHARE = 0.005
"""The part of the training time that full snapshots may take."""

COPY_RATE = 4e9
"""Bytes a second that are assumed before a copy is measured; the first one has to get its memory, too."""


@dataclass(frozen=True)
class Snapshot:
    """A consistent full copy: the tree of all states in host memory, and the commit it belongs to."""

    tree: dict[str, Any]
    commits: int
    is_reusable: bool = True
    """Whether each of its tensors has memory of its own, which another copy may be written into."""


class Snapshots:
    """The last full copy of a state.

    There are at most two sets of buffers: one that is acquired, to be written to disk, is not touched
    until it is released.
    """

    def __init__(self) -> None:
        self.last: Snapshot | None = None
        """The last copy; None before the first."""
        self._acquired: Snapshot | None = None
        self._spare: Snapshot | None = None
        self._is_first = True
        self._taken_at = float("-inf")
        self._seconds = 0.0

    def is_due(self, now: float, commits: int) -> bool:
        """Whether to take a copy at `now`, after so many commits.

        The cost of the last one has to allow it. And workers should copy at the same commits, since all wait
        for each of them: so a copy waits for a multiple of the power of two below the commits since the last.
        """
        if self.last is None:
            return True
        between = max(commits - self.last.commits, 1)
        is_common = commits % (1 << (between.bit_length() - 1)) == 0
        return is_common and now - self._taken_at >= self._seconds / SNAPSHOT_SHARE

    def take(self, tree: dict[str, Any], commits: int) -> None:
        """Copy `tree`, the state after so many commits; call `taken` with its times."""
        into = self._spare if self._acquired is self.last else self.last
        self._spare = None
        self._is_first = into is None or not into.is_reusable
        self.last = Snapshot(_host_copy(tree, into.tree if into and into.is_reusable else None), commits)

    def taken(self, started: float, now: float) -> None:
        """A copy was begun at `started` and done `now`."""
        assert self.last is not None
        usual = tensor_bytes(self.last.tree) / COPY_RATE
        self._taken_at, self._seconds = now, min(now - started, usual) if self._is_first else now - started

    def adopt(self, tree: dict[str, Any], commits: int, now: float) -> None:
        """Keep a tree in host memory that nobody else uses, such as a received one, as the last copy.

        Its tensors may be views of one memory, as received ones are. `torch.save` refuses those, so the next
        copy gets memory of its own, and only such a copy may be acquired.
        """
        self.last = Snapshot(tree, commits, is_reusable=False)
        self._taken_at, self._seconds = now, tensor_bytes(tree) / COPY_RATE

    def acquire(self) -> Snapshot:
        """The last copy, left as it is until `release`. One can be acquired at a time."""
        assert self.last is not None
        assert self.last.is_reusable
        assert self._acquired is None
        self._acquired = self.last
        return self.last

    def release(self) -> None:
        """The acquired copy may be overwritten again."""
        if self._acquired is not self.last:
            self._spare = self._acquired
        self._acquired = None


def copied(value: Any) -> Any:
    """A deep copy; several times faster than `copy.deepcopy` on what states mostly are."""
    kind = type(value)
    if kind in (int, float, bool, str, bytes, type(None)):
        return value
    if kind is dict:
        return {key: copied(item) for key, item in value.items()}
    if kind is list:
        return [copied(item) for item in value]
    if kind is torch.Tensor:
        return value.detach().clone()
    return copy.deepcopy(value)


def tensor_bytes(tree: dict[str, Any]) -> int:
    """Bytes of all tensors in a tree."""
    return sum(leaf.nbytes for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor))


def _host_copy(tree: dict[str, Any], buffers: dict[str, Any] | None) -> dict[str, Any]:
    """A copy of `tree` in host memory, into the tensors of `buffers` where their shapes still fit."""
    leaves, structure = pytree.tree_flatten(tree)
    old, old_structure = pytree.tree_flatten(buffers)
    reusable = old if structure == old_structure else [None] * len(leaves)
    copies = [_copy_leaf(leaf, into) for leaf, into in zip(leaves, reusable, strict=True)]
    if any(isinstance(leaf, torch.Tensor) and leaf.is_cuda for leaf in leaves):
        torch.cuda.synchronize()
    return pytree.tree_unflatten(copies, structure)  # type: ignore[no-any-return]


def _copy_leaf(leaf: Any, into: Any) -> Any:
    """A copy of a leaf; one from a GPU is complete when the GPU has been waited for."""
    if not isinstance(leaf, torch.Tensor):
        return copied(leaf)
    fits = isinstance(into, torch.Tensor) and into.shape == leaf.shape and into.dtype == leaf.dtype
    if fits and (not leaf.is_cuda or into.is_pinned()):
        target = into
    else:
        target = torch.empty(leaf.shape, dtype=leaf.dtype, device="cpu", pin_memory=leaf.is_cuda)
    with torch.no_grad():
        return target.copy_(leaf, non_blocking=leaf.is_cuda)
