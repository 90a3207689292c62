"""Creating, stopping and deleting experiments."""

import re
import secrets
import shutil
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, BinaryIO, Protocol

from edt_launch.service.bus import Bus, Topic
from edt_launch.service.database.records import UserRecord
from edt_launch.service.database.search_records import SEARCH_LIVE, SearchRecord, TrialRecord, Wish
from edt_launch.service.database.store import Store
from edt_launch.service.deleting import delete_file
from edt_launch.service.errors import ConflictError, InvalidError
from edt_launch.service.experiment_spec import ExperimentSpec, SearchSpec
from edt_launch.service.home import SEARCH_ID, Home
from edt_launch.service.submission import Submission, Submitter, new_id, remove_files
from edt_launch.service.trial_job import check_job, check_parameters

Deletion = Callable[[], None]
"""Deletes files that are out of the way already."""


class Parts(Protocol):
    """Parts of the service; `api.context.Context` has them."""

    @property
    def home(self) -> Home: ...  # noqa: D102
    @property
    def store(self) -> Store: ...  # noqa: D102
    @property
    def bus(self) -> Bus: ...  # noqa: D102
    @property
    def clock(self) -> Callable[[], float]: ...  # noqa: D102
    @property
    def stop(self) -> threading.Event: ...  # noqa: D102
    @property
    def submitter(self) -> Submitter: ...  # noqa: D102
    def changed(self, *topics: Topic) -> None: ...  # noqa: D102


def submit(parts: Parts, user: UserRecord, spec: ExperimentSpec, code: BinaryIO | None) -> SearchRecord:
    """Queue an experiment.

    Args:
        parts: of the service.
        user: who will own it.
        spec: what it is.
        code: an archive of its trials' code, which can be sought, if there is one.

    Raises:
        ServiceError: no trial could be submitted, or the name is taken.
        OSError: the disk is full, say.
    """
    if re.fullmatch(SEARCH_ID, spec.name):
        raise InvalidError(f"name: {spec.name!r} looks like an id", "take another name")
    template = spec.job.model_dump(mode="json")
    file_name = "" if code is None else "code"
    search = record_of(user, spec, parts.clock(), template=template, file_name=file_name)
    check_job(spec, spec.job, spec.name or search.id)
    parts.submitter.rehearse(Submission(user, spec.job, code))
    added = create(parts, search, code, [spec.name or search.id])
    if added is None:
        raise ConflictError(f"name: there is an experiment {spec.name!r} already", "take another name")
    return added


def record_of(user: UserRecord, spec: SearchSpec, now: float, **fields: Any) -> SearchRecord:
    """An experiment as it is first written down, but for its name.

    Raises:
        InvalidError: its trials' parameters are too large.
    """
    check_parameters(spec)
    definition = spec.model_dump(mode="json", include=set(SearchSpec.model_fields), exclude_none=True)
    seed = secrets.randbits(32) if spec.seed is None else spec.seed
    id_ = "h" + new_id()[1:]
    return replace(SearchRecord(id_, "", user.name, definition, "", seed, now), **fields)


def create(
    parts: Parts, search: SearchRecord, code: BinaryIO | None, names: Iterable[str]
) -> SearchRecord | None:
    """Keep the code for the trials, and write the experiment down under the first name that is free.

    Returns:
        The experiment; None if all names are taken.

    Raises:
        OSError: the disk is full, say.
    """
    copy, archive = parts.home.incoming / search.id, parts.home.search(search.id)
    added = None
    try:
        if code is not None:
            code.seek(0)
            with copy.open("wb") as file:
                shutil.copyfileobj(code, file)
            copy.rename(archive)
        named = (replace(search, name=name) for name in names)
        added = next(filter(parts.store.searches.add, named), None)
    finally:
        copy.unlink(missing_ok=True)
        if added is None:
            archive.unlink(missing_ok=True)
    parts.bus.notify(Topic.SEARCHES)
    return added


def stop(parts: Parts, search: SearchRecord, wanted: Wish = Wish.STOP) -> bool:
    """Have an experiment and its trials stop; whether that is new, and there is something to stop."""
    is_new = search.wanted is Wish.RUN or (search.wanted, wanted) == (Wish.STOP, Wish.FORCE)
    if not is_new or not parts.store.searches.wish(search.id, wanted, SEARCH_LIVE):
        return False
    parts.bus.notify(Topic.SEARCHES)
    return True


def delete(parts: Parts, search: SearchRecord) -> list[Deletion]:
    """Forget an experiment, its trials, their jobs and files.

    Raises:
        ConflictError: it has not ended, or a job of it has not, or it was started again just now.
    """
    if not search.has_ended:
        raise ConflictError(f"{search.name} is {search.state}", "stop it first, and wait until it has ended")
    jobs = ended_jobs(parts, search, parts.store.searches.trials(search.id))
    if not parts.store.searches.delete(search):
        raise ConflictError(f"{search.name} was started again, or deleted, just now")
    return [*delete_jobs(parts, jobs), partial(delete_file, parts.home.search(search.id))]


def ended_jobs(parts: Parts, search: SearchRecord, trials: Sequence[TrialRecord]) -> Collection[str]:
    """The jobs of trials.

    Raises:
        ConflictError: some have not ended.
    """
    jobs = parts.store.jobs.some([trial.job for trial in trials if trial.job])
    if live := sum(not job.has_ended for job in jobs.values()):
        raise ConflictError(
            f"{search.name}: {live} jobs of its trials are still ending", "try again in a moment"
        )
    return jobs.keys()


def delete_jobs(parts: Parts, jobs: Collection[str]) -> list[Deletion]:
    """Forget jobs that have ended; their files are out of the way at once."""
    for job in jobs:
        parts.store.jobs.delete(job)
    if jobs:
        parts.changed()
    return [remove_files(parts.home, job) for job in jobs]


def key_of(search: SearchRecord, trial: TrialRecord) -> str:
    """The idempotency key of a trial's job. Users' keys have no blanks."""
    return f"{search.id} {trial.number} {trial.created!r}"
