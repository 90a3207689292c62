"""The service's parts, as everything that serves a request or submits a job is given them."""

import hashlib
import platform
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.fair_threads import FairThreads
from edt_launch.service.app.first_start import this_user
from edt_launch.service.app.home import JOB_ID, Home
from edt_launch.service.bus import Bus, Topic
from edt_launch.service.cluster.machines import Machines
from edt_launch.service.cluster.recent_history import RecentHistory
from edt_launch.service.data.sets import DataSets
from edt_launch.service.db.store import Store
from edt_launch.service.errors import ForbiddenError, GoneError, NotFoundError, TooLargeError
from edt_launch.service.experiments.records import ExperimentRecord
from edt_launch.service.files.archives.entry import ArchiveLimits
from edt_launch.service.files.series_cache import HistoryCache, SeriesCache
from edt_launch.service.http.shared_answers import SharedAnswers
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.store import NoSuchJobError
from edt_launch.service.jobs.submission import Submitter

if TYPE_CHECKING:  # the pool is given these parts, too, and reads no settings
    from edt_launch.service.app.settings import Settings


UPLOADS, WAITING_UPLOADS = 4, 64
"""Uploads that are taken in at a time, one of each user; and those of one user that may wait."""

DRAWINGS = 8
"""Pictures of the pool that are kept; one has some MB at most."""

MAX_CHANGES = 20_000
"""Changes of allocations that a picture of the pool is made from: the newest."""

DATA_UPLOADS = 2
"""Uploads of data that are taken in at a time, which do not keep jobs waiting."""

READS, WAITING_READS = 2, 64
"""Requests for much of what jobs have written, as above."""


@dataclass(frozen=True)
class Context:
    """The service's parts.

    Attributes:
        clock: gives unix time.
        url: how clients reach the service.
        stop: set when it is to end: streams end then.
        uploads: take in what users send.
        data_uploads: take in data sets.
        reads: read what jobs have written, as much as that may be.
        series_cache, history_cache: of the jobs that are looked at.
        machines: what is known of hosts at present.
    """

    settings: "Settings"
    store: Store
    bus: Bus
    clock: Callable[[], float]
    url: str = "http://127.0.0.1"
    stop: threading.Event = field(default_factory=threading.Event)
    uploads: FairThreads = field(default_factory=lambda: FairThreads(UPLOADS, WAITING_UPLOADS))
    data_uploads: FairThreads = field(default_factory=lambda: FairThreads(DATA_UPLOADS, WAITING_UPLOADS))
    reads: FairThreads = field(default_factory=lambda: FairThreads(READS, WAITING_READS))
    series_cache: SeriesCache = field(default_factory=SeriesCache)
    history_cache: HistoryCache = field(default_factory=HistoryCache)
    machines: Machines = field(default_factory=Machines)

    @cached_property
    def shared(self) -> SharedAnswers:
        """Answers that many ask for at the same moment, as they are sent."""
        return SharedAnswers(self.bus, self.clock)

    @cached_property
    def drawings(self) -> SharedAnswers:
        """Pictures of the pool, which several answers are made from."""
        return SharedAnswers(self.bus, self.clock, DRAWINGS)

    @cached_property
    def recent_history(self) -> RecentHistory:
        """Changes of allocations in windows that end now."""
        return RecentHistory(self.store.history, MAX_CHANGES + 1)

    @property
    def home(self) -> Home:
        """Where the service keeps what."""
        return self.settings.paths

    @cached_property
    def data_sets(self) -> DataSets:
        """What users have uploaded into the data folder."""
        settings = self.settings
        service = hashlib.sha256(f"{platform.node()}:{self.home.root}".encode()).hexdigest()[:16]
        advice = "split it, or have an administrator raise max_data or max_data_files"
        limits = ArchiveLimits(settings.max_data, settings.max_data_files, "the data set", advice)
        is_for_all = settings.job_users is not None
        return DataSets(settings.data_folder, service, limits, self.clock, is_for_all=is_for_all)

    @property
    def submitter(self) -> Submitter:
        """Takes jobs in."""
        limits = ArchiveLimits(self.settings.max_unpacked, self.settings.max_files)
        return Submitter(self.home, self.store, limits, this_user(), self.settings.highest_priority)

    def check_result(self, size: int) -> None:
        """See whether so many bytes of a job's files may be sent; raises `TooLargeError` if not."""
        if size > self.settings.max_result:
            raise TooLargeError(
                f"the files have {size:,} bytes, more than max_result, {self.settings.max_result:,}",
                "fetch them from the machine of the service, or have an administrator raise max_result",
            )

    def job(self, job_id: str) -> JobRecord:
        """A job that anybody may look at; `NotFoundError` if there is none of that id.

        `GoneError` if it has been deleted, and had devices before: of others nothing is known any more.
        """
        is_id = re.fullmatch(JOB_ID, job_id) is not None  # databases refuse other texts each in its way
        try:
            if is_id:
                return self.store.jobs.get(job_id)
        except NoSuchJobError:
            if self.store.history.newest(job_id, limit=1):
                raise GoneError(
                    f"the job {job_id} has been deleted, with all that it had made",
                    "the page of jobs and `edt ps --all` list those that are left",
                ) from None
        raise NotFoundError(
            f"there is no job {job_id[:80]!r}",
            "the page of jobs, `edt ps --all` and GET /api/v1/jobs?all=1 list them",
        )

    def job_of(self, job_id: str, user: UserRecord) -> JobRecord:
        """A job that `user` may do everything with; `ForbiddenError` if it is somebody else's."""
        job = self.job(job_id)
        if not may(user, job):
            raise ForbiddenError(f"{job.id} is a job of {job.owner}", "ask them, or an administrator")
        return job

    def changed(self, *topics: Topic) -> None:
        """Tell everyone that the desired state has changed."""
        self.bus.notify(Topic.DESIRED_STATE, Topic.JOBS, *topics)


def may(user: UserRecord, thing: JobRecord | ExperimentRecord) -> bool:
    """Whether a user may see and change everything of a job, or a search."""
    return user.may_act_for(thing.owner)
