"""Threads for work that takes long, apart from those that serve requests, and divided among who asks."""

from collections.abc import AsyncIterator, Callable, Hashable, Iterator
from itertools import islice
from typing import TypeVar
from weakref import WeakValueDictionary

import anyio
from anyio import to_thread

from edt_launch.service.errors import UnavailableError

_T = TypeVar("_T")


class FairThreads:
    """Does one thing at a time for everybody who asks, whatever the number of their requests.

    Args:
        at_once: threads.
        waiting: requests of one who asks that may wait.
    """

    def __init__(self, at_once: int, waiting: int) -> None:
        self._threads = anyio.CapacityLimiter(at_once)
        self._waiting = waiting
        self._turns: WeakValueDictionary[Hashable, anyio.Lock] = WeakValueDictionary()

    async def run(self, who: Hashable, work: Callable[[], _T]) -> _T:
        """Have a thread do the work, after what has been asked for by the same before.

        Raises:
            UnavailableError: too many of their requests wait.
        """
        turn = self._turn(who)
        if turn.statistics().tasks_waiting >= self._waiting:
            raise UnavailableError(
                f"{self._waiting} requests like this wait already", "try again in a moment"
            )
        async with turn:
            return await to_thread.run_sync(work, limiter=self._threads)

    async def each(self, who: Hashable, items: Iterator[_T]) -> AsyncIterator[_T]:
        """What an iterator gives; a thread asks it for each item, in turn with all else that is asked for."""
        turn = self._turn(who)
        while True:
            async with turn:
                found = await to_thread.run_sync(lambda: list(islice(items, 1)), limiter=self._threads)
            if not found:
                return
            yield found[0]

    def _turn(self, who: Hashable) -> anyio.Lock:
        return self._turns.setdefault(who, anyio.Lock())
