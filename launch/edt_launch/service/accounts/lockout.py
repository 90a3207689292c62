"""Wrong passwords cost time: the next attempt has to wait, each time twice as long."""

from collections import OrderedDict
from collections.abc import Hashable

FREE = 3
"""Failures after which waiting begins, with a second."""

LONGEST = 60.0
"""Seconds that one waits at most."""

FORGOTTEN = 900.0
"""Seconds after the last failure when all are forgotten."""

MAX_ADDRESSES = 10_000
"""Of whom failures are remembered; of more, those whose last is the longest ago are forgotten."""


class Lockout:
    """Counts failures of whoever tries. Times are seconds of any clock that only goes forwards."""

    def __init__(self) -> None:
        self._failures: OrderedDict[Hashable, tuple[int, float]] = OrderedDict()

    def wait(self, who: Hashable, now: float) -> float:
        """Seconds for which the next attempt is refused; 0 if it is not."""
        count, at = self._failures.get(who, (0, now))
        if count < FREE or now - at >= FORGOTTEN:
            return 0.0
        return max(0.0, at + min(LONGEST, 2.0 ** (count - FREE)) - now)

    def failed(self, who: Hashable, now: float) -> None:
        """Count a failure."""
        count, at = self._failures.pop(who, (0, now))
        self._failures[who] = (1 if now - at >= FORGOTTEN else count + 1, now)
        if len(self._failures) > MAX_ADDRESSES:
            self._failures.popitem(last=False)

    def succeeded(self, who: Hashable) -> None:
        """Forget all failures."""
        self._failures.pop(who, None)
