"""Full copies: when they are due, and whose buffers they use."""

from typing import Any

import torch

from edt_hvd.state.snapshot import SNAPSHOT_SHARE, Snapshots


def tree(value: float) -> dict[str, Any]:
    return {"weight": torch.full((3,), value), "values": [value]}


def address(snapshots: Snapshots) -> int:
    return int(snapshots.last.tree["weight"].data_ptr())


def test_the_next_copy_is_due_when_the_last_ones_cost_allows() -> None:
    snapshots = Snapshots()
    assert snapshots.is_due(0.0, 0)
    snapshots.take(tree(1.0), 1)
    snapshots.take(tree(1.0), 1)
    snapshots.taken(started=10.0, now=11.0)
    assert not snapshots.is_due(11 + 0.99 / SNAPSHOT_SHARE, 2)
    assert snapshots.is_due(11 + 1 / SNAPSHOT_SHARE, 2)


def due_at(first: int, allowed: int) -> int:
    """When a copy is taken after the one at commit `first`, if its cost allows it `allowed` commits later."""
    snapshots = Snapshots()
    for _ in range(2):
        snapshots.take(tree(1.0), first)
    snapshots.taken(started=-allowed * SNAPSHOT_SHARE, now=0.0)  # one commit a second, from now on
    return next(n for n in range(first + 1, 5000) if snapshots.is_due(n - first, n))


def test_workers_copy_at_the_same_commits_although_it_costs_them_differently() -> None:
    assert [due_at(0, allowed) for allowed in (1, 3, 130, 200, 256, 300)] == [1, 4, 256, 256, 256, 512]
    assert {due_at(512, allowed) for allowed in range(130, 257)} == {768}
    assert {due_at(first, 200) for first in (512, 540, 567)} == {768}


def test_a_lent_copy_stays_as_it_is_in_two_sets_of_buffers() -> None:
    snapshots = Snapshots()
    snapshots.take(tree(1.0), 1)
    first = address(snapshots)
    acquired = snapshots.acquire()
    snapshots.take(tree(2.0), 2)
    second = address(snapshots)
    assert second != first
    snapshots.take(tree(3.0), 3)
    assert address(snapshots) == second
    assert (acquired.tree["weight"].tolist(), acquired.tree["values"], acquired.commits) == (
        [1.0] * 3,
        [1.0],
        1,
    )
    snapshots.release()
    snapshots.acquire()
    snapshots.take(tree(4.0), 4)
    assert address(snapshots) == first
    snapshots.release()
