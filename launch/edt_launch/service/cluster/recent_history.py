"""The changes of allocations in windows that end now: the database is asked only for new ones.

Its table only grows, and one loop writes it in the order of the numbers.
"""

import threading
from collections.abc import Iterable, Sequence
from math import inf

from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.cluster.store import History

KEPT = 300.0
"""Seconds for which the changes of a window are kept after it was last asked for."""


class RecentHistory:
    """Keeps the changes of the longest window that was asked for lately; any thread may ask.

    Args:
        history: the table.
        most: changes that are kept: the newest.
    """

    def __init__(self, history: History, most: int) -> None:
        self._history = history
        self._most = most
        self._lock = threading.Lock()
        self._asked: dict[float, float] = {}
        """When windows of so many seconds were last asked for."""
        self._since = inf
        self._number = 0
        self._changes: Sequence[AllocationRecord] = ()

    def last(self, seconds: float, now: float) -> Sequence[AllocationRecord]:
        """The same as `History.window` of the last so many seconds."""
        with self._lock:
            lately = {other: at for other, at in self._asked.items() if 0 <= now - at < KEPT}
            self._asked = lately | {seconds: now}
            since = now - max(self._asked)
            if since < self._since:
                self._number = self._history.newest_number()
                self._changes = self._history.window(since, inf, self._most)
            elif new := self._history.after(self._number):
                self._changes = within([*self._changes, *new], since, self._most)
            self._since = since
            self._number = max((self._number, *(change.number for change in self._changes[-1:])))
            changes = self._changes
        return within(changes, now - seconds, self._most)


def within(changes: Iterable[AllocationRecord], since: float, most: int) -> list[AllocationRecord]:
    """The newest of the changes since a time, and of each job that had devices then the last one before."""
    before: dict[str, AllocationRecord] = {}
    during = []
    for change in changes:
        if change.time < since:
            before[change.job] = change
        else:
            during.append(change)
    held = [change for change in before.values() if change.after > 0]
    return sorted([*held, *during], key=lambda change: change.number)[-most:]
