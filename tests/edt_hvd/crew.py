"""Several workers in one process: threads that run one at a time, each until its next collective."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
import pytest

from edt_hvd import collectives
from edt_hvd.reduction import header, participants
from edt_hvd.world import world

T = TypeVar("T")


def together(size: int, work: Callable[[int], T], *, max_size: int = 1, membership: int = 0) -> list[T]:
    """What `work(rank)` returns in a world of `size` workers, in the order of ranks.

    Raises:
        Exception: of the lowest rank that has failed of itself, and not because others had.
    """
    ranks, turn, barrier = threading.local(), threading.Lock(), threading.Barrier(size)
    given: list[Any] = [None] * size

    def exchange(value: Any) -> list[Any]:
        given[ranks.own] = value
        turn.release()
        try:
            barrier.wait(timeout=60)
            found = list(given)
            barrier.wait(timeout=60)
        finally:
            turn.acquire()
        return found

    def run(rank: int) -> T:
        ranks.own = rank
        with turn:
            try:
                return work(rank)
            except Exception:
                barrier.abort()
                raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world, "rank", lambda: ranks.own)
        patch.setattr(world, "size", lambda: size)
        patch.setattr(world, "max_size", lambda: max(max_size, size))
        patch.setattr(world, "membership", lambda: membership)
        patch.setattr(world, "check_collective", lambda call: None)
        patch.setattr(participants, "active", lambda: ())
        patch.setattr(header, "gather", lambda row, name: np.concatenate(exchange(row)))
        patch.setattr(collectives, "gather", exchange)
        with ThreadPoolExecutor(size) as pool:
            calls = [pool.submit(run, rank) for rank in range(size)]
        errors = [error for call in calls if (error := call.exception()) is not None]
        for error in sorted(errors, key=lambda error: isinstance(error, threading.BrokenBarrierError)):
            raise error
        return [call.result() for call in calls]
