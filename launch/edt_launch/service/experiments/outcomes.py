"""What has come of a job: the values that it has reported, and the devices that it took. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, Self

from edt_launch.core.events import Event, Progress
from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.cluster.timeline import bars
from edt_launch.service.files.series import MAX_NAMES, About, number

HOUR = 3600.0


@dataclass(frozen=True)
class Outcome:
    """How a job ended, or stands.

    Attributes:
        state: of the job; "deleted" if nobody knows.
        hours: devices times hours.
        seconds: from its first step to its end, or from its first device if it has made none.
        step: the last that it made.
        values: by name: `lowest`, `highest`, `last` and `missing`, as in `series.About`.
    """

    state: str
    hours: float = 0.0
    seconds: float = 0.0
    step: int | None = None
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def stored(self) -> dict[str, Any]:
        """As JSON."""
        return {**vars(self), "state": str(self.state)}

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> Self:
        """From what `stored` gave."""
        return cls(**stored)

    def last(self, name: str) -> float | None:
        """The last value of a name that was a finite number."""
        found = self.values.get(name, {}).get("last")
        return None if found is None else float(found)


class Values:
    """All values that a job has reported, the first 200: a fold over its events, like `series.Series`."""

    def __init__(self) -> None:
        self._found: dict[str, About] = {}

    def observe(self, event: Event) -> None:
        """Take in an event."""
        if not isinstance(event, Progress):
            return
        for name, value in event.values.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if name not in self._found and len(self._found) >= MAX_NAMES:
                continue
            self._found.setdefault(name, About()).observe(number(value))

    def columns(self) -> dict[str, Any]:
        """What is known, by name."""
        return {name: asdict(about) for name, about in sorted(self._found.items())}


class Usage(NamedTuple):
    """Devices times hours that a job had, and when it had its first one."""

    hours: float
    since: float


def usage_of(changes: Iterable[AllocationRecord], now: float) -> dict[str, Usage]:
    """What jobs have used until now, by their ids; `changes` are all that they went through."""
    found: dict[str, Usage] = {}
    for bar in bars(changes, 0.0, now):
        known = found.get(bar.job, Usage(0.0, bar.start))
        hours = known.hours + (bar.end - bar.start) / HOUR
        found[bar.job] = Usage(hours, min(known.since, bar.start))
    return found
