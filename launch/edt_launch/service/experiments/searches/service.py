"""Creating, stopping and deleting searches."""

import re
import secrets
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context, may
from edt_launch.service.app.home import SEARCH_ID
from edt_launch.service.bus import Topic
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from edt_launch.service.experiments.records import (
    SEARCH_LIVE,
    ExperimentRecord,
    RunRecord,
    SearchState,
    SearchWanted,
    TrialState,
)
from edt_launch.service.experiments.searches import answers
from edt_launch.service.experiments.searches.spec import Objective, SearchSpec
from edt_launch.service.experiments.searches.trial_job import SubmittedSearch, check_job, check_parameters
from edt_launch.service.files.archives.deleting import delete_file
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.submission import Submission, digest, id_of, like, new_id, remove_files
from edt_launch.service.names import MAX_NAME

Deletion = Callable[[], None]
"""Deletes files that are out of the way already."""


def submit(
    context: Context, user: UserRecord, spec: SubmittedSearch, code: BinaryIO | None, key: str | None = None
) -> ExperimentRecord:
    """Queue a search; `code` is an archive of its trials' code, which can be sought, if there is one.

    With a `key`, which is one user's and one search's, it is queued once; not from two threads at a time.

    Raises:
        ServiceError: no trial could be submitted, or the name is taken.
        OSError: the disk is full, say.
    """
    if re.fullmatch(SEARCH_ID, spec.name):
        raise InvalidError(f"name: {spec.name!r} looks like an id", "take another name")
    template = spec.job.model_dump(mode="json")
    file_name = "" if code is None else "code"
    search = record_of(user, spec, context.clock(), template=template, file_name=file_name)
    if key is not None:
        search = replace(search, id="h" + id_of(f"{user.name} {key}")[1:])
        search = replace(search, name=spec.name or search.id)
        known = context.store.experiments.search(search.id)
        if known is not None:
            if _is_same(context, known, search, code):
                return known
            raise ConflictError(
                f"this form was sent before, and made the search {known.name}", "stop that, or send it again"
            )
    check_job(spec, spec.job, spec.name or search.id)
    context.submitter.rehearse(Submission(user, spec.job, code))
    added = create(context, search, code, [spec.name or search.id])
    if added is None:
        raise ConflictError(f"name: there is a search {spec.name!r} already", "take another name")
    return added


def _is_same(
    context: Context, known: ExperimentRecord, search: ExperimentRecord, code: BinaryIO | None
) -> bool:
    """Whether a search that is there is what is submitted, with the same code."""
    fields = ("name", "generator", "template", "file_name")
    if any(getattr(known, field) != getattr(search, field) for field in fields):
        return False
    if code is None:
        return True
    with context.home.search(known.id).open("rb") as kept:
        return digest(kept) == digest(code)


def record_of(user: UserRecord, spec: SearchSpec, now: float, **fields: Any) -> ExperimentRecord:
    """A search as it is first written down, but for its name; raises like `check_parameters`."""
    check_parameters(spec)
    record = ExperimentRecord(
        id="h" + new_id()[1:],
        project=None,
        name="",
        description="",
        source="",
        command=(),
        metric=spec.metric,
        objective=spec.objective,
        owner=user.name,
        created=now,
        changed=now,
        changed_by=user.name,
        algorithm=spec.algorithm,
        generator=spec.model_dump(mode="json", include=set(SearchSpec.model_fields), exclude_none=True),
        max_trials=spec.max_trials,
        seed=secrets.randbits(32) if spec.seed is None else spec.seed,
    )
    return replace(record, **fields)


def create(
    context: Context, search: ExperimentRecord, code: BinaryIO | None, names: Iterable[str]
) -> ExperimentRecord | None:
    """Keep the code for the trials, and write the search down under the first name that is free.

    Returns it, or None if all names are taken.
    """
    copy, archive = context.home.incoming / search.id, context.home.search(search.id)
    added = None
    try:
        if code is not None:
            code.seek(0)
            with copy.open("wb") as file:
                shutil.copyfileobj(code, file)
            copy.rename(archive)
        named = (replace(search, name=name) for name in names)
        added = next(filter(context.store.experiments.add, named), None)
    finally:
        copy.unlink(missing_ok=True)
        if added is None:
            archive.unlink(missing_ok=True)
    context.bus.notify(Topic.SEARCHES)
    return added


def stop(context: Context, search: ExperimentRecord, wanted: SearchWanted = SearchWanted.STOP) -> bool:
    """Have a search and its trials stop; whether that is new, and there is something to stop."""
    order = list(SearchWanted)
    is_new = order.index(wanted) > order.index(search.wanted)
    if not is_new or not context.store.experiments.set_wanted(search.id, wanted, SEARCH_LIVE):
        return False
    context.bus.notify(Topic.SEARCHES)
    return True


def new_run_id() -> str:
    """An id of a run, or a trial, that nobody can guess: `spec.RUN_ID`."""
    return "r" + new_id()[1:]


def to_try_again(search: ExperimentRecord, trials: Sequence[RunRecord]) -> Sequence[RunRecord] | None:
    """The trials that are tried again if a search goes on; None if it has nothing to go on with."""
    match search.state:
        case SearchState.WAITING:
            return ()
        case SearchState.STOPPED:
            return [trial for trial in trials if trial.state is TrialState.STOPPED]
        case SearchState.FAILED:
            return trials
    return None


def restart(context: Context, search: ExperimentRecord) -> list[Deletion]:
    """Have a search go on that was stopped, has failed, or waits for better times; what has finished stays.

    Raises:
        ConflictError: there is nothing to go on with, jobs of it have not ended, or somebody was quicker.
    """
    again = to_try_again(search, context.store.experiments.trials(search.id))
    if again is None:
        raise ConflictError(
            f"{search.name} is {search.state}", "only one that was stopped, has failed or waits can go on"
        )
    return go_on(context, search, again)


def go_on(context: Context, search: ExperimentRecord, again: Sequence[RunRecord]) -> list[Deletion]:
    """Have a search go on, and try these trials again; raises `ConflictError` as `restart` does."""
    jobs = ended_jobs(context, search, again)
    if not context.store.experiments.start_again(search, [trial.id for trial in again], jobs):
        raise ConflictError(f"{search.name} was started again, or deleted, just now")
    context.bus.notify(Topic.SEARCHES)
    return remove_jobs_files(context, jobs)


def run_best(
    context: Context,
    user: UserRecord,
    search: ExperimentRecord,
    best: RunRecord | None,
    key: str | None = None,
) -> JobRecord:
    """Submit a job like that of a search's best trial, once with one key; raises `ServiceError`."""
    trial_job = best.job if best else None
    job = context.store.jobs.some([trial_job]).get(trial_job) if trial_job else None
    if job is None:
        raise ConflictError(
            f"{search.name} has no best trial whose job is there", "wait until a trial has succeeded"
        )
    spec = like(job, name=f"{search.name[: MAX_NAME - 5]}-best")
    new, _ = context.submitter.submit(Submission(user, spec, key=key), context.clock())
    context.changed()
    return new


def delete(context: Context, search: ExperimentRecord) -> list[Deletion]:
    """Forget a search, its trials, their jobs and files.

    Raises:
        ConflictError: it has not ended, or a job of it has not, or it was started again just now.
    """
    if not search.has_ended:
        raise ConflictError(f"{search.name} is {search.state}", "stop it first, and wait until it has ended")
    jobs = ended_jobs(context, search, context.store.experiments.trials(search.id))
    if not context.store.experiments.delete_search(search, jobs):
        raise ConflictError(f"{search.name} was started again, or deleted, just now")
    return [*remove_jobs_files(context, jobs), partial(delete_file, context.home.search(search.id))]


def ended_jobs(context: Context, search: ExperimentRecord, trials: Sequence[RunRecord]) -> Collection[str]:
    """The jobs of trials; `ConflictError` if some have not ended."""
    jobs = context.store.jobs.some([trial.job for trial in trials if trial.job])
    if live := sum(not job.has_ended for job in jobs.values()):
        raise ConflictError(
            f"{search.name}: {live} jobs of its trials are still ending", "try again in a moment"
        )
    return jobs.keys()


def remove_jobs_files(context: Context, jobs: Collection[str]) -> list[Deletion]:
    """Take away the files of jobs that have been forgotten."""
    if jobs:
        context.changed()
    return [remove_files(context.home, job) for job in jobs]


def best_of(context: Context, page: Sequence[ExperimentRecord]) -> dict[str, RunRecord]:
    """The best trial of each search, by the search's id."""
    best: dict[str, RunRecord] = {}
    for objective in Objective:
        ids = [one.id for one in page if one.objective == objective]
        best |= context.store.experiments.best(ids, largest=objective is Objective.MAXIMIZE)
    return best


def search_of(context: Context, name: str) -> ExperimentRecord:
    """A search, by its id or name; raises `NotFoundError`."""
    search = context.store.experiments.search(name)
    if search is None:
        raise NotFoundError(
            f"there is no search {name[:80]!r}",
            "GET /api/v1/searches lists them: `edt search ls`",
        )
    return search


def own_search(context: Context, user: UserRecord, name: str) -> ExperimentRecord:
    """A search that a user may do everything with."""
    search = search_of(context, name)
    if not may(user, search):
        raise not_theirs(search)
    return search


def not_theirs(search: ExperimentRecord) -> ForbiddenError:
    """The error of a search that is somebody else's."""
    return ForbiddenError(f"{search.name} is a search of {search.owner}", "ask them, or an administrator")


def shown(context: Context, user: UserRecord, name: str) -> dict[str, Any]:
    """A search, by its id or name, and its trials, as `user` may see them."""
    search = search_of(context, name)
    best = best_of(context, [search]).get(search.id)
    return answers.search_with_trials(search, context.store.experiments.trials(search.id), best, user)


def page(context: Context, user: UserRecord, owner: str | None, wanted: PageQuery) -> dict[str, Any]:
    """A page of all searches, or of those of an owner."""
    page, following = wanted.cut(context.store.experiments.search_page(owner, wanted))
    return {"searches": listed(context, user, page), "next": following}


def listed(context: Context, user: UserRecord, page: Sequence[ExperimentRecord]) -> list[dict[str, Any]]:
    """Searches as lists have them, as `user` may see them."""
    counts = context.store.experiments.trial_counts([one.id for one in page])
    best = best_of(context, [one for one in page if may(user, one)])
    return [answers.search(one, counts[one.id], best.get(one.id), user) for one in page]
