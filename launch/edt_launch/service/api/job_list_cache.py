"""All recent jobs at the moment, as JSON: made once for all who watch."""

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pydantic_core import to_json

from edt_launch.service.api import views
from edt_launch.service.api.context import may
from edt_launch.service.bus import Bus, Topic
from edt_launch.service.database.records import JobRecord, UserRecord
from edt_launch.service.database.store import Store
from edt_launch.service.states import LIVE

RECENT = 3600.0
"""Seconds for which an ended job is still shown."""

STALE = 5.0
"""Seconds after which the database is looked at though nobody has told of a change."""


@dataclass(frozen=True)
class Shown:
    """A job, as JSON for those who may see everything of it and for others."""

    record: JobRecord
    full: bytes
    public: bytes

    def to(self, viewer: UserRecord) -> bytes:
        """What `viewer` sees."""
        return self.full if may(viewer, self.record) else self.public


Picture = Mapping[str, Shown]
"""Jobs by their ids, in the order of their submission."""


class Pictures:
    """Makes pictures, a new one only when something has changed.

    Args:
        store: where the jobs are.
        bus: tells of changes.
        clock: gives unix time.
    """

    def __init__(self, store: Store, bus: Bus, clock: Callable[[], float]) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._lock = threading.Lock()
        self._version: int | None = None
        self._at = float("-inf")
        self._picture: Picture = {}

    def latest(self) -> Picture:
        """The picture now; jobs that have not changed are the same objects as before."""
        with self._lock:
            version, now = self._bus.version(Topic.JOBS), self._clock()
            if version != self._version or not 0 <= now - self._at < STALE:
                page = self._store.jobs.page(states=LIVE, ended_since=now - RECENT, limit=None)
                self._picture = {record.id: self._shown(record) for record in page.jobs}
                self._version, self._at = version, now
            return self._picture

    def _shown(self, record: JobRecord) -> Shown:
        before = self._picture.get(record.id)
        if before is not None and before.record == record:
            return before
        job = views.job(record)
        return Shown(record, to_json(job), to_json(views.hidden(job)))
