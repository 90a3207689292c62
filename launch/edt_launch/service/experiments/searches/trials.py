"""How trials become jobs, by the template of a job, and which metric they have come to."""

from dataclasses import replace
from functools import partial
from typing import Protocol

from edt_launch.core.history.job_history import MAX_NUMBER, JobHistory
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.experiments.records import ExperimentRecord, RunRecord
from edt_launch.service.experiments.searches.decide import TrialOutcome
from edt_launch.service.experiments.searches.spec import SearchSpec
from edt_launch.service.experiments.searches.trial_job import job_of
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.submission import Submission


class Trials(Protocol):
    """What makes jobs of the trials of one kind of search."""

    def submit(self, user: UserRecord, search: ExperimentRecord, trial: RunRecord) -> None:
        """Submit a trial's job, which is written down with the trial.

        Raises:
            ServiceError: the job makes no sense, or the user may not submit it.
            pydantic.ValidationError: likewise.
            OSError: the disk is full, say.
        """

    def outcome(self, spec: SearchSpec, job: JobRecord) -> TrialOutcome:
        """What a job that has succeeded has come to."""


class JobTrials:
    """Trials whose template is a `JobSpec`; they read their parameters from variables and words."""

    def __init__(self, parts: Context) -> None:
        self._parts = parts

    def submit(self, user: UserRecord, search: ExperimentRecord, trial: RunRecord) -> None:  # noqa: D102
        spec = job_of(search.template, search.name, trial.place or 0, trial.parameters)
        submission = Submission(user, spec, run=trial)
        submit, now = self._parts.submitter.submit, self._parts.clock()
        if not search.file_name:
            submit(submission, now)
        else:
            with self._parts.home.search(search.id).open("rb") as code:
                submit(replace(submission, code=code), now)
        self._parts.changed()

    def outcome(self, spec: SearchSpec, job: JobRecord) -> TrialOutcome:  # noqa: D102
        events = self._parts.home.job(job.id).output.events
        try:
            return self._parts.history_cache.read(events, partial(reported, spec.metric))
        except OSError as error:
            return TrialOutcome(reason=f"{events.name} cannot be read: {error.strerror}")


def reported(name: str, history: JobHistory) -> TrialOutcome:
    """The last value of a metric that a script has reported."""
    value = history.values.get(name)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MAX_NUMBER:
        return TrialOutcome(float(value))
    was = "never reported" if value is None else f"last {value!r:.80}, no number of less than 1e300"
    return TrialOutcome(
        reason=f"the metric {name!r} was {was}: call edt_hvd.report({name}=...) while training"
    )
