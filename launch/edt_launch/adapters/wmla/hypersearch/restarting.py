"""Having searches go on that were stopped or have failed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from edt_launch.adapters.wmla.hypersearch.views import SEARCH_STATES
from edt_launch.service.api.context import Context
from edt_launch.service.bus import Topic
from edt_launch.service.database.records import ExperimentRecord, ExperimentState, TrialRecord, TrialState
from edt_launch.service.errors import ConflictError, InvalidError
from edt_launch.service.experiments import Deletion, ended_jobs, remove_jobs_files


def restart(context: Context, search: ExperimentRecord) -> list[Deletion]:
    """Have a search go on that was stopped, has failed, or waits for better times; what has finished stays.

    Raises:
        InvalidError: there is nothing to go on with, or somebody else was quicker.
        ConflictError: jobs of it have not ended yet.
    """
    trials = context.store.experiments.trials(search.id)
    match search.state:
        case ExperimentState.WAITING:
            again: Sequence[TrialRecord] = ()
        case ExperimentState.STOPPED:
            again = [trial for trial in trials if trial.state is TrialState.STOPPED]
        case ExperimentState.FAILED:
            again = trials
        case other:
            raise InvalidError(
                f"Hpo task {search.name} is {SEARCH_STATES[other]}",
                "only one that is STOPPED, FAILED or RECOVERPEND can be started again",
            )
    with as_hpo_task():
        jobs = ended_jobs(context, search, again)
    if not context.store.experiments.start_again(search, [trial.number for trial in again], jobs):
        raise InvalidError(f"Hpo task {search.name} was started again, or deleted, just now")
    context.bus.notify(Topic.EXPERIMENTS)
    return remove_jobs_files(context, jobs)


@contextmanager
def as_hpo_task() -> Iterator[None]:
    """Call an experiment in errors what WMLA calls it; they begin with its name."""
    try:
        yield
    except ConflictError as error:
        raise ConflictError(f"Hpo task {error.detail}", error.next_step) from None
