"""`/api/v1/stream`: jobs as they change; and all recent jobs as JSON, made once for all who watch."""

import asyncio
import contextlib
import random
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio
from fastapi import APIRouter, Request
from fastapi.responses import StreamingResponse
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context, may
from edt_launch.service.bus import Bus, Topic
from edt_launch.service.db.engine import AWAY
from edt_launch.service.db.store import Store
from edt_launch.service.http import sse
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs import answers
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.service import RECENT
from edt_launch.service.jobs.states import LIVE

router = APIRouter(tags=["jobs"])


STALE = 5.0
"""Seconds after which the database is looked at though nobody has told of a change."""

CHUNK = 2**16
"""Bytes of an event that are sent at a time: who reads slowly does not have the service keep all of it."""

RETRY = (1000, 3000)
"""Milliseconds after which whoever has lost the stream asks for it again: each at another time."""

PAUSE = 0.25
"""Seconds between two looks at whether anything has changed."""


@dataclass(frozen=True)
class RenderedJob:
    """A job, as JSON for those who may see everything of it and for others."""

    record: JobRecord
    full: bytes
    public: bytes

    def to(self, viewer: UserRecord) -> bytes:
        """What `viewer` sees."""
        return self.full if may(viewer, self.record) else self.public


JobList = Mapping[str, RenderedJob]
"""Jobs by their ids, in the order of their submission."""


class JobListCache:
    """Renders the jobs, again only when something has changed; of progress, it reads no more than that."""

    def __init__(self, store: Store, bus: Bus, clock: Callable[[], float]) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._lock = threading.Lock()
        self._looking = anyio.Lock()
        self._versions: tuple[int, int] | None = None
        self._at = float("-inf")
        self._job_list: JobList = {}
        self._told_of: JobList = {}
        self._told: dict[tuple[int, str | None], tuple[JobList | None, bytes | None]] = {}

    def latest(self) -> JobList:
        """The jobs now; those that have not changed are the same objects as before."""
        with self._lock:
            versions, now = self._versions_now(), self._clock()
            is_old = self._versions is None or not 0 <= now - self._at < STALE
            if is_old or versions[0] != self._versions[0]:  # type: ignore[index]  # it is None when old
                page = self._store.jobs.page(JobQuery(states=LIVE, ended_since=now - RECENT, limit=None))
                self._job_list = {record.id: self._shown(record) for record in page.jobs}
                self._at = now
            elif versions != self._versions:
                progress = self._store.jobs.progress()
                self._job_list = {
                    id_: self._moved(shown, progress[id_]) if id_ in progress else shown
                    for id_, shown in self._job_list.items()
                }
            self._versions = versions
            return self._job_list

    async def watched(self) -> JobList:
        """Like `latest`, in a thread; however many ask at a time, one thread looks for all of them."""
        async with self._looking:
            is_new = self._versions == self._versions_now() and 0 <= self._clock() - self._at < STALE
            return self._job_list if is_new else await run_in_threadpool(self.latest)

    def _versions_now(self) -> tuple[int, int]:
        return self._bus.version(Topic.JOBS), self._bus.version(Topic.PROGRESS)

    def difference(self, known: JobList | None, job_list: JobList, user: UserRecord) -> bytes | None:
        """Like the function `difference`; made once for all who know the same and may see the same."""
        who = user.confined_to
        with self._lock:
            if self._told_of is not job_list:
                self._told_of, self._told = job_list, {}
            kept = self._told.get((id(known), who))
        if kept is None:
            # With what is known, so that nothing else gets its identity meanwhile.
            kept = known, difference(known, job_list, user)
            with self._lock:
                if self._told_of is job_list:
                    self._told[id(known), who] = kept
        return kept[1]

    def _moved(self, shown: RenderedJob, progress: Mapping[str, Any]) -> RenderedJob:
        is_same = all(getattr(shown.record, name) == value for name, value in progress.items())
        return shown if is_same else self._shown(replace(shown.record, **progress))

    def _shown(self, record: JobRecord) -> RenderedJob:
        before = self._job_list.get(record.id)
        if before is not None and before.record == record:
            return before
        job = answers.job(record)
        return RenderedJob(record, to_json(job), to_json(answers.hidden(job, record)))


@router.get("/stream", response_class=StreamingResponse, responses={200: {"content": {sse.MEDIA_TYPE: {}}}})
def stream(request: Request, context: ContextDep, user: CurrentUser) -> StreamingResponse:
    """Server-sent events `jobs`: {"jobs": those that are new or have changed, "gone": ids}; all at first."""
    return StreamingResponse(
        _changes(context, user, request.app.state.job_list_cache), media_type=sse.MEDIA_TYPE
    )


async def _changes(context: Context, user: UserRecord, job_list_cache: JobListCache) -> AsyncIterator[bytes]:
    yield b"retry: %d\n\n" % random.randint(*RETRY)
    known: JobList | None = None
    seen, looked, silent = -1, 0.0, 0.0
    while not context.stop.is_set():
        version, now = context.bus.version(Topic.JOBS, Topic.PROGRESS), context.clock()
        if version != seen or now - looked >= STALE:
            seen, looked = version, now
            with contextlib.suppress(*AWAY):  # the next look finds what has changed
                job_list = await job_list_cache.watched()
                message = job_list_cache.difference(known, job_list, user)
                known = job_list
                if message is not None:
                    silent = 0.0
                    for start in range(0, len(message), CHUNK):
                        yield message[start : start + CHUNK]
        if silent >= sse.KEEP_ALIVE_INTERVAL:
            silent = 0.0
            yield sse.KEEP_ALIVE
        silent += PAUSE
        await asyncio.sleep(PAUSE)


def difference(known: JobList | None, job_list: JobList, user: UserRecord) -> bytes | None:
    """The event with the difference of two lists; None if there is none."""
    before = known or {}
    changed = [shown.to(user) for job, shown in job_list.items() if before.get(job) is not shown]
    gone = [job for job in before if job not in job_list]
    if known is not None and not changed and not gone:
        return None
    data = b'{"jobs":[%b],"gone":%b}' % (b",".join(changed), to_json(gone))
    return sse.message(data.decode(), event="jobs")
