"""What every request needs: the service's parts, and who asks."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from edt_launch.service.archive import Limits
from edt_launch.service.bus import Bus, Topic
from edt_launch.service.database.jobs import NoSuchJobError
from edt_launch.service.database.records import JobRecord, TokenRecord, UserRecord
from edt_launch.service.database.search_records import SearchRecord
from edt_launch.service.database.store import Store
from edt_launch.service.errors import ForbiddenError, NotFoundError
from edt_launch.service.first_start import this_user
from edt_launch.service.home import Home
from edt_launch.service.settings import Settings
from edt_launch.service.submission import Submitter

USER, TOKEN = "edt_user", "edt_token"
"""Where in a request's scope the middleware has put who asks, and the token that proves it."""


@dataclass(frozen=True)
class Context:
    """The service's parts.

    Attributes:
        settings: the service's.
        store: what it remembers.
        bus: how its parts wake each other.
        stop: set when the service is to end: streams end then.
        clock: gives unix time.
    """

    settings: Settings
    store: Store
    bus: Bus
    clock: Callable[[], float]
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def home(self) -> Home:
        """Where the service keeps what."""
        return self.settings.paths

    @property
    def limits(self) -> Limits:
        """What submitted code may be."""
        return Limits(self.settings.max_unpacked, self.settings.max_files)

    @property
    def submitter(self) -> Submitter:
        """Takes jobs in."""
        return Submitter(self.home, self.store, self.limits, this_user(), self.settings.highest_priority)

    def job(self, job_id: str) -> JobRecord:
        """A job that anybody may look at.

        Raises:
            NotFoundError: there is none of that id.
        """
        try:
            self.home.job(job_id)
            return self.store.jobs.get(job_id)
        except (ValueError, NoSuchJobError):
            raise no_such_job(job_id) from None

    def job_of(self, job_id: str, user: UserRecord) -> JobRecord:
        """A job that `user` may do everything with.

        Raises:
            NotFoundError: there is none of that id.
            ForbiddenError: it is somebody else's.
        """
        job = self.job(job_id)
        if not may(user, job):
            raise ForbiddenError(f"{job.id} is a job of {job.owner}", "ask them, or an administrator")
        return job

    def changed(self, *topics: Topic) -> None:
        """Tell everyone that wishes have changed."""
        self.bus.notify(Topic.WISHES, Topic.JOBS, *topics)


def no_such_job(job_id: str) -> NotFoundError:
    """The error about an id that no job has."""
    return NotFoundError(
        f"there is no job {job_id[:80]!r}", "GET /api/v1/jobs?all=1 lists them: `edt ps --all`"
    )


def may(user: UserRecord, thing: JobRecord | SearchRecord) -> bool:
    """Whether a user may see and change everything of a job, or an experiment."""
    return user.is_admin or user.name == thing.owner


async def _context(request: Request) -> Context:
    return cast("Context", request.app.state.context)


async def _user(request: Request) -> UserRecord:
    return cast("UserRecord", request.scope[USER])


async def _token(request: Request) -> TokenRecord:
    return cast("TokenRecord", request.scope[TOKEN])


async def _admin(request: Request) -> UserRecord:
    user = await _user(request)
    if not user.is_admin:
        raise ForbiddenError(f"{user.name} is no administrator", "ask one")
    return user


Here = Annotated[Context, Depends(_context)]
"""The service's parts."""

User = Annotated[UserRecord, Depends(_user)]
"""Who asks."""

Shown = Annotated[TokenRecord, Depends(_token)]
"""The token that proves who asks, below `/api/v1`."""

Admin = Annotated[UserRecord, Depends(_admin)]
"""Who asks; others than administrators are refused."""
