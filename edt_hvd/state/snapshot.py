"""Full copies of a state in host memory, in buffers that are reused."""

import copy
import time
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from edt_hvd.state import host_memory

SNAPSHOT_SHARE = 0.005
"""The part of the training time that full snapshots may take."""

COPY_RATE = 4e9
"""Bytes a second that are assumed before a copy is measured; the first one has to get its memory, too."""

RETRY = 10.0
"""Seconds after which memory is looked for again where there was not enough."""


@dataclass(frozen=True)
class Snapshot:
    """A consistent full copy: the tree of all states in host memory, and the commit it belongs to."""

    tree: dict[str, Any]
    commits: int


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
        self._has_warned = self._is_lent = False
        self._refused_at = float("-inf")
        self._taken_at = float("-inf")
        self._seconds = 0.0

    def is_due(self, now: float, commits: int) -> bool:
        """Whether to take a copy at `now`, after so many commits.

        The cost of the last one has to allow it. And workers should copy at the same commits, since all wait
        for each of them: so a copy waits for a multiple of the power of two below the commits since the last.
        """
        if now < self._refused_at + RETRY:
            return False
        if self.last is None:
            return True
        between = max(commits - self.last.commits, 1)
        is_common = commits % (1 << (between.bit_length() - 1)) == 0
        return is_common and now - self._taken_at >= self._seconds / SNAPSHOT_SHARE

    def take(self, tree: dict[str, Any], commits: int) -> bool:
        """Copy `tree`, the state after so many commits; call `taken` with its times.

        Returns:
            False if the copy does not fit into the memory that is available. Nothing has changed then.
        """
        into = self._spare if self._acquired is self.last else self.last
        is_first = into is None
        if is_first and not self._fits(tensor_bytes(tree)):
            return False
        self._spare, self._is_first = None, is_first
        self.last = Snapshot(_host_copy(tree, None if into is None else into.tree), commits)
        return True

    def _fits(self, size: int) -> bool:
        """Whether there is memory for a copy of that size; says so once where there is not."""
        available = host_memory.available()
        if size <= available:
            return True
        if not self._has_warned:
            warnings.warn(
                f"no full copy of the state is taken in memory: it takes {size / 1e9:.2f} GB, and "
                f"{available / 1e9:.2f} GB are available. If a worker is lost after optimizer.step() and "
                "before state.commit(), training goes back to the last copy or checkpoint. Give each worker "
                "more memory, or call no collectives between the two (see docs/explanation/memory.md)",
                stacklevel=2,
            )
        self._has_warned, self._refused_at = True, time.monotonic()
        return False

    def drop(self) -> None:
        """Free the last copy, which is not needed; one that is acquired stays until it is released."""
        self.last, self._spare = None, None

    def taken(self, started: float, now: float) -> None:
        """A copy was begun at `started` and done `now`."""
        assert self.last is not None
        usual = tensor_bytes(self.last.tree) / COPY_RATE
        self._taken_at, self._seconds = now, min(now - started, usual) if self._is_first else now - started

    def lend(self, tree: dict[str, Any], commits: int) -> None:
        """Have a state itself acquired in place of a copy, by a writer that training waits for."""
        self.last, self._is_lent = Snapshot(tree, commits), True

    def acquire(self) -> Snapshot:
        """The last copy, left as it is until `release`. One can be acquired at a time."""
        assert self.last is not None
        assert self._acquired is None
        self._acquired = self.last
        return self.last

    def release(self) -> None:
        """The acquired copy may be overwritten again."""
        if self._is_lent:
            self.last, self._is_lent = None, False
        if self._acquired is not self.last and self.last is not None:
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
