"""Answers that many ask for at the same moment, when something has changed, made once for all of them."""

import gzip
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from edt_launch.service.bus import Bus, Topic

STALE = 5.0
"""Seconds after which an answer is made again though nobody has told of a change: times in it go on."""

MOST = 64
"""Answers that are kept: those asked for last."""

LEVEL = 5
"""Of compression: the higher ones take much longer and gain little."""


@dataclass
class _Kept:
    lock: threading.Lock = field(default_factory=threading.Lock)
    version: int | None = None
    at: float = float("-inf")
    compressed: bytes = b""


class SharedAnswers:
    """Gives answers as gzip; any thread may ask."""

    def __init__(self, bus: Bus, clock: Callable[[], float]) -> None:
        self._bus = bus
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, _Kept] = OrderedDict()

    def get(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        """What `make` gives, compressed: the same for all who ask with this key until something changes.

        Whoever asks while it is being made waits for that.
        """
        with self._lock:
            kept = self._kept.pop(key, None) or _Kept()
            self._kept[key] = kept
            if len(self._kept) > MOST:
                self._kept.popitem(last=False)
        with kept.lock:
            version, now = self._bus.version(Topic.JOBS, Topic.HOSTS), self._clock()
            if version != kept.version or not 0 <= now - kept.at < STALE:
                kept.compressed = gzip.compress(make(), LEVEL, mtime=0)
                kept.version, kept.at = version, now
            return kept.compressed
