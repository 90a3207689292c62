"""Deleting searches, and the trials that a search starts again without."""

from collections.abc import Sequence
from functools import partial

from edt_launch.service.api.afterwards import Deletion
from edt_launch.service.api.context import Context
from edt_launch.service.bus import Topic
from edt_launch.service.database.search_records import SearchRecord, SearchState, TrialRecord, TrialState
from edt_launch.service.deleting import delete_file
from edt_launch.service.errors import ConflictError, InvalidError
from edt_launch.service.submission import remove_files

MEANWHILE = "was started again, or deleted, just now"


def delete(context: Context, search: SearchRecord) -> list[Deletion]:
    """Forget a search, its trials, their jobs and files.

    Raises:
        ConflictError: it has not ended, or a job of it has not, or it was started again just now.
    """
    if not search.has_ended:
        raise ConflictError(f"Hpo task {search.name} is {search.state}", "stop it first")
    jobs = _ended_jobs(context, search, context.store.searches.trials(search.id))
    if not context.store.searches.delete(search):
        raise ConflictError(f"Hpo task {search.name} {MEANWHILE}")
    return [*_delete_jobs(context, jobs), partial(delete_file, context.home.search(search.id))]


def restart(context: Context, search: SearchRecord) -> list[Deletion]:
    """Have a search go on that was stopped, has failed, or waits for better times; what has finished stays.

    Raises:
        InvalidError: there is nothing to go on with, or somebody else was quicker.
        ConflictError: jobs of it have not ended yet.
    """
    match search.state:
        case SearchState.RECOVERPEND:
            again: Sequence[TrialRecord] = ()
        case SearchState.STOPPED:
            again = [
                trial
                for trial in context.store.searches.trials(search.id)
                if trial.state is TrialState.KILLED
            ]
        case SearchState.FAILED:
            again = context.store.searches.trials(search.id)
        case other:
            raise InvalidError(
                f"Hpo task {search.name} is {other}",
                "only one that is STOPPED, FAILED or RECOVERPEND can be started again",
            )
    jobs = _ended_jobs(context, search, again)
    if not context.store.searches.start_again(search, [trial.number for trial in again]):
        raise InvalidError(f"Hpo task {search.name} {MEANWHILE}")
    context.bus.notify(Topic.SEARCHES)
    return _delete_jobs(context, jobs)


def _ended_jobs(context: Context, search: SearchRecord, trials: Sequence[TrialRecord]) -> Sequence[str]:
    """The jobs of trials.

    Raises:
        ConflictError: some have not ended.
    """
    jobs = context.store.jobs.some([trial.job for trial in trials if trial.job])
    if live := sorted(job.id for job in jobs.values() if not job.has_ended):
        raise ConflictError(
            f"Hpo task {search.name}: {len(live)} jobs of its trials are still ending",
            "try again in a moment",
        )
    return list(jobs)


def _delete_jobs(context: Context, jobs: Sequence[str]) -> list[Deletion]:
    for job in jobs:
        context.store.jobs.delete(job)
    if jobs:
        context.changed()
    return [remove_files(context.home, job) for job in jobs]
