"""What is folded from the events of jobs that are looked at; each look goes on where the last one ended.

An open page asks again and again; reading all of a job's events each time would cost seconds.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from edt_launch.core.files.growing_file import REACH, GrowingFile
from edt_launch.core.history.event_codec import events_of
from edt_launch.core.history.events import Event
from edt_launch.core.history.job_history import JobHistory
from edt_launch.service.files.series import MAX_POINTS as POINTS
from edt_launch.service.files.series import Series

MAX_SERIES = 32
"""Series that are kept: those asked for last. One has a few hundred kB at most."""

MAX_HISTORIES = 256
"""Jobs whose histories are kept: those asked for last. One has a few dozen kB."""


class _Fold(Protocol):
    def observe(self, event: Event) -> None: ...


F = TypeVar("F", bound=_Fold)
Answer = TypeVar("Answer")


@dataclass
class _Reading(Generic[F]):
    """A fold over the events of a file."""

    fold: F
    file: GrowingFile
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Cache(Generic[F]):
    """Folds that are kept, by a key; any thread may ask."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._readings: OrderedDict[Hashable, _Reading[F]] = OrderedDict()

    def _read(
        self, key: Hashable, events: Path, anew: Callable[[], F], answer: Callable[[F], Answer]
    ) -> Answer:
        with self._lock:
            reading = self._readings.pop(key, None)
            reading = reading or _Reading(anew(), GrowingFile(events, reach=REACH))
            self._readings[key] = reading
            if len(self._readings) > self._most:
                self._readings.popitem(last=False)
        with reading.lock:
            for lines in reading.file.looks():
                if reading.file.is_another:
                    reading.fold = anew()
                for event in events_of(lines):
                    reading.fold.observe(event)
            return answer(reading.fold)


class SeriesCache(_Cache[Series]):
    """Gives the columns of a job's course; any thread may ask."""

    def __init__(self) -> None:
        super().__init__(MAX_SERIES)

    def columns(self, events: Path, names: Sequence[str] = (), most: int = POINTS) -> dict[str, Any]:
        """The columns of what an `events.jsonl` has by now, from 64 MiB before the end it had at first.

        Like `Series.columns`; empty if there is no such file. `names` are of values besides `loss`.
        """
        key = events, tuple(names), most
        return self._read(key, events, lambda: Series(names, most), Series.columns)


class HistoryCache(_Cache[JobHistory]):
    """Gives what is asked of a job's history; any thread may ask."""

    def __init__(self) -> None:
        super().__init__(MAX_HISTORIES)

    def read(self, events: Path, answer: Callable[[JobHistory], Answer]) -> Answer:
        """What `answer` makes of the history that the same part of an `events.jsonl` tells."""
        return self._read(events, events, JobHistory, answer)
