"""The courses of jobs that are looked at, each of which goes on from where it was read to.

An open page asks again and again; reading all of a job's events each time would cost seconds.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from edt_launch.core.event_codec import events_of
from edt_launch.core.events import Event
from edt_launch.core.growing_file import REACH, GrowingFile
from edt_launch.service.experiments.outcomes import Values
from edt_launch.service.files.series import MAX_POINTS as POINTS
from edt_launch.service.files.series import Series

MAX_SERIES = 32
"""Courses that are kept: those asked for last. One has a few hundred kB at most."""

MAX_VALUES = 256
"""Jobs whose values are kept: those asked for last. One has a few kB."""


class Fold(Protocol):
    """What is made of a job's events, one after the other."""

    def observe(self, event: Event) -> None: ...  # noqa: D102
    def columns(self) -> dict[str, Any]: ...  # noqa: D102


@dataclass
class _Reading:
    """A fold over the events of a file."""

    fold: Fold
    file: GrowingFile
    lock: threading.Lock = field(default_factory=threading.Lock)


class _Cache:
    """Folds that are kept, by a key; any thread may ask."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._readings: OrderedDict[Hashable, _Reading] = OrderedDict()

    def _columns(self, key: Hashable, events: Path, anew: Callable[[], Fold]) -> dict[str, Any]:
        with self._lock:
            reading = self._readings.pop(key, None)
            reading = reading or _Reading(anew(), GrowingFile(events, reach=REACH))
            self._readings[key] = reading
            if len(self._readings) > self._most:
                self._readings.popitem(last=False)
        with reading.lock:
            with reading.file as file:
                for lines in file.looks():
                    if file.is_another:
                        reading.fold = anew()
                    for event in events_of(lines):
                        reading.fold.observe(event)
            return reading.fold.columns()


class SeriesCache(_Cache):
    """Gives the columns of a job's course; any thread may ask."""

    def __init__(self) -> None:
        super().__init__(MAX_SERIES)

    def columns(self, events: Path, names: Sequence[str] = (), most: int = POINTS) -> dict[str, Any]:
        """The columns of what an `events.jsonl` has by now, from 64 MiB before the end it had at first.

        Like `Series.columns`; empty if there is no such file. `names` are of values besides `loss`.
        """
        return self._columns((events, tuple(names), most), events, lambda: Series(names, most))


class ValuesCache(_Cache):
    """Gives what is known of all values that a job has reported; any thread may ask."""

    def __init__(self) -> None:
        super().__init__(MAX_VALUES)

    def columns(self, events: Path) -> dict[str, Any]:
        """Of the same part of an `events.jsonl`, as `outcomes.Values` has it."""
        return self._columns(events, events, Values)
