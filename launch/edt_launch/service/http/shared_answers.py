"""Answers that many ask for at the same moment, when something has changed, made once for all of them."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from math import inf
from typing import Any, TypeVar

import anyio
from anyio import to_thread

from edt_launch.service.bus import Bus, Topic

_T = TypeVar("_T")

STALE = 5.0
"""Seconds after which an answer is made again though nobody has told of a change: times in it go on."""

MAX_ANSWERS = 64
"""Answers that are kept: those asked for last."""


@dataclass
class _Kept:
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    version: int | None = None
    at: float = float("-inf")
    took: float = 0.0
    answer: Any = None


class SharedAnswers:
    """Keeps answers until a job or a host changes; that jobs make progress does not count.

    Args:
        bus: tells of changes.
        clock: gives unix time.
        most: answers that are kept.
        processor_time: of the calling thread.
    """

    def __init__(
        self,
        bus: Bus,
        clock: Callable[[], float],
        most: int = MAX_ANSWERS,
        processor_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._most = most
        self._processor_time = processor_time
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    async def get(self, key: Hashable, make: Callable[[], _T], effort: float = inf) -> _T:
        """What `make` gives in a thread: the same for all who ask with this key until something changes.

        Whoever asks while it is being made waits for that, without a thread. An answer that takes long is
        kept longer, so that making it again and again uses no more than `effort`, a part of a processor.
        """
        kept = self._kept.pop(key, None) or _Kept()
        self._kept[key] = kept
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        async with kept.lock:
            version, now = self._bus.version(Topic.JOBS, Topic.HOSTS), self._clock()
            age = now - kept.at
            is_old = version != kept.version or age >= STALE
            if age < 0 or (is_old and age >= kept.took / effort):
                kept.answer, kept.took = await to_thread.run_sync(self._timed, make)
                kept.version, kept.at = version, now
            answer: _T = kept.answer
            return answer

    def _timed(self, make: Callable[[], _T]) -> tuple[_T, float]:
        """What is made, and the processor time that this took."""
        began = self._processor_time()
        return make(), self._processor_time() - began
