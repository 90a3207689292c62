"""What has come of a job: the values that it has reported, and the devices that it took. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.cluster.timeline import bars

HOUR = 3600.0


@dataclass(frozen=True)
class RunOutcome:
    """How a job ended, or stands.

    Attributes:
        state: of the job; "deleted" if nobody knows.
        hours: devices times hours.
        seconds: from its first step to its end, or from its first device if it has made none.
        step: the last that it made.
        values: by name: `lowest`, `highest`, `last` and `missing`, as in `job_history.Summary`.
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


class DeviceUsage(NamedTuple):
    """Devices times hours that a job had, and when it had its first one."""

    hours: float
    since: float


def usage_of(changes: Iterable[AllocationRecord], now: float) -> dict[str, DeviceUsage]:
    """What jobs have used until now, by their ids; `changes` are all that they went through."""
    found: dict[str, DeviceUsage] = {}
    for bar in bars(changes, 0.0, now):
        known = found.get(bar.job, DeviceUsage(0.0, bar.start))
        hours = known.hours + (bar.end - bar.start) / HOUR
        found[bar.job] = DeviceUsage(hours, min(known.since, bar.start))
    return found
