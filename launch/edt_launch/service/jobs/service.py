"""What REST and pages do with jobs."""

from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from edt_launch.cluster.allocation import HOST
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context, may
from edt_launch.service.app.home import SEARCH_ID
from edt_launch.service.errors import ConflictError, InvalidError
from edt_launch.service.experiments import runs
from edt_launch.service.experiments.experiments import experiment_for
from edt_launch.service.experiments.searches.service import Deletion
from edt_launch.service.experiments.spec import EXPERIMENT_ID
from edt_launch.service.http.schemas import UnixTime
from edt_launch.service.jobs import answers
from edt_launch.service.jobs.explanation import explain
from edt_launch.service.jobs.forecast.forecast import resumed, upcoming
from edt_launch.service.jobs.forecast.losing import loss
from edt_launch.service.jobs.forecast.upcoming import begins
from edt_launch.service.jobs.query import SORTS, JobQuery
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.specification import ANNOTATIONS, JobChange, check_framework, check_sizes
from edt_launch.service.jobs.states import LIVE, State, Wanted
from edt_launch.service.jobs.submission import remove_files
from edt_launch.service.names import MAX_NAME, OWNERS, PLAIN, TAG

MAX_PAGE_SIZE = 1000
"""Jobs of one page."""

MAX_SUGGESTED = 20
"""Jobs that forms suggest."""


class JobListQuery(BaseModel):
    """What a list of jobs is asked for: those that fit all of these."""

    state: str | None = Field(None, max_length=256, description="Only in these, with commas between.")
    owner: str | None = Field(
        None, max_length=1024, pattern=f"^{OWNERS}$", description="Only these users', with commas between."
    )
    limit: int = Field(MAX_PAGE_SIZE, ge=1, le=MAX_PAGE_SIZE, description="Jobs of a page.")
    after: int = Field(0, ge=0, le=2**53, description="`next` of the page before.")
    everything: bool = Field(False, alias="all", description="Also those that ended long ago.")
    text: str = Field(
        "",
        max_length=MAX_NAME,
        pattern=f"^{PLAIN}$",
        description="In the name or comment, or the id's beginning.",
    )
    tag: str | None = Field(None, pattern=f"^{TAG}$", description="Only jobs with this tag.")
    newest: bool = Field(False, description="The newest first, or the highest by `sort`.")
    host: str | None = Field(None, max_length=255, pattern=f"^{HOST}$", description="Only on this host.")
    experiment: str | None = Field(None, pattern=f"^{EXPERIMENT_ID}$", description="Only this one's runs.")
    search: str | None = Field(None, pattern=f"^{SEARCH_ID}$", description="Only this one's trials.")
    submitted_since: UnixTime | None = None
    owner_text: str = Field("", max_length=MAX_NAME, pattern=f"^{PLAIN}$", description="In the owner's name.")
    sort: Literal[SORTS] = Field(  # type: ignore[valid-type]  # one of a tuple
        "number", description="In the order of this field; `next` is then a place in the list."
    )

    def query(self, now: float) -> JobQuery:
        """The same for the database; without a state, jobs that live or have ended in the last hour.

        Raises:
            InvalidError: a state is none.
        """
        is_recent = self.state is None and not self.everything
        return JobQuery(
            states=LIVE if is_recent else states_of(self.state),
            ended_since=now - RECENT if is_recent else None,
            owners=items(self.owner),
            **self.model_dump(exclude={"state", "owner", "everything"}),
        )


def jobs_page(context: Context, user: UserRecord, wanted: JobListQuery) -> dict[str, Any]:
    """A page of jobs, like `schemas.Jobs`; those of an experiment are for whoever may see that."""
    if wanted.experiment is not None:
        experiment_for(context, user, wanted.experiment)
    page = context.store.jobs.page(wanted.query(context.clock()))
    return {"jobs": [answers.job(job, user) for job in page.jobs], "next": page.next}


def states_of(text: str | None) -> frozenset[State] | None:
    """The states of a list with commas between; None for all of them."""
    names = items(text)
    if names is None:
        return None
    try:
        return frozenset(map(State, names))
    except ValueError:
        raise InvalidError(f"state: {text!r} is not possible", f"use some of {', '.join(State)}") from None


def items(text: str | None) -> list[str] | None:
    """The items of a list with commas between."""
    return None if text is None else [item.strip() for item in text.split(",")]


def changed(
    context: Context, user: UserRecord, job_id: str, changes: JobChange
) -> tuple[dict[str, Any], JobRecord]:
    """The fields that a user may change so, and the job as it would be then."""
    job = context.job_of(job_id, user)
    desired = {name: value for name, value in changes.model_dump().items() if value is not None}
    if job.has_ended and (others := sorted(desired.keys() - ANNOTATIONS)):
        raise ConflictError(
            f"{job.id} has {job.state}: {', '.join(others)} cannot be changed any more",
            "submit it again with other values",
        )
    if "priority" in desired:
        context.submitter.check_priority(user, desired["priority"])
    try:
        least, most = desired.get("min", job.min), desired.get("max", job.max)
        check_sizes(least, most, job.allowed)
        check_framework(job.framework, job.command, least, most)
    except ValueError as error:
        raise InvalidError(str(error), "change min and max together") from None
    return desired, replace(job, **desired)


async def explained(context: Context, user: UserRecord, job: JobRecord) -> dict[str, Any]:
    """Why a job has its size, like `schemas.Why`; why it failed, as far as the user may know that."""
    if not may(user, job):
        job = replace(job, failure=None)
    waits = job.state is State.QUEUED and job.wanted is Wanted.RUN
    start = begins(job.id, await upcoming(context)) if waits else None
    hosts = await run_in_threadpool(context.store.hosts.all)
    return explain(job, start, context.machines.waiting, hosts)


def wanting(job: JobRecord, wanted: Wanted) -> JobRecord:
    """A job of which something else is wanted, as the allocator would see it."""
    return resumed(job) if wanted is Wanted.RUN else replace(job, wanted=wanted)


RECENT = 3600.0
"""Seconds for which an ended job is still shown."""


def change(context: Context, user: UserRecord, job_id: str, changes: JobChange) -> JobRecord:
    """Change a live job, or what is said of one that has ended."""
    desired, job = changed(context, user, job_id, changes)
    job = context.store.jobs.change(job.id, **desired)
    context.changed()
    return job


def pause(context: Context, user: UserRecord, job_id: str, *, force: bool = False) -> JobRecord:
    """Pause a job; `ConflictError` if its work were lost, unless `force` is given."""
    lost = loss(context.job_of(job_id, user), context.clock())
    if lost and not force:
        then = "ends it, and it begins again when it is resumed"
        raise ConflictError(f"{lost}: paused, it would begin again", f"edt pause --force {job_id} {then}")
    return set_wanted(context, user, job_id, Wanted.PAUSE)


def set_wanted(context: Context, user: UserRecord, job_id: str, wanted: Wanted) -> JobRecord:
    """Stop a job, or have it run or paused."""
    job = context.job_of(job_id, user)
    job = context.store.jobs.set_wanted(job.id, wanted)
    if job.wanted is not wanted or (job.has_ended and wanted is not Wanted.STOP):
        state = job.state if job.has_ended else "stopping"
        raise ConflictError(f"{job.id} is {state}", "submit it again to have it run")
    context.changed()
    return job


def delete(context: Context, user: UserRecord, job_id: str) -> Deletion:
    """Forget a job that has ended; what is returned deletes its files."""
    job = context.job_of(job_id, user)
    if not job.has_ended:
        raise ConflictError(f"{job.id} is {job.state}", "stop it first, and wait until it has ended")
    runs.keep(context, job.id)
    if not context.store.jobs.delete(job.id):
        raise ConflictError(f"{job.id} is a trial whose search has yet to read its result", "try again soon")
    context.changed()
    return remove_files(context.home, job.id)


def suggested(context: Context, user: UserRecord) -> list[tuple[str, str]]:
    """Ids and names of a user's newest jobs, for forms that take one."""
    newest = JobQuery(owners=(user.name,), newest=True, limit=MAX_SUGGESTED)
    return [(job.id, job.name) for job in context.store.jobs.page(newest).jobs]
