"""How trials become jobs: of any program, by the template of a job."""

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from edt_launch.jobs.experiments.decide import Outcome
from edt_launch.jobs.experiments.metric import reported
from edt_launch.service.database.records import ExperimentRecord, JobRecord, TrialRecord, UserRecord
from edt_launch.service.experiment_spec import SearchSpec
from edt_launch.service.experiments import key_of
from edt_launch.service.submission import Submission
from edt_launch.service.trial_job import job_of

if TYPE_CHECKING:  # the pool does not know the web
    from edt_launch.service.api.context import Context


class Trials(Protocol):
    """What makes jobs of the trials of one kind of experiment."""

    def submit(self, user: UserRecord, search: ExperimentRecord, trial: TrialRecord) -> TrialRecord:
        """Submit a trial's job, with the idempotency key `key_of(search, trial)`.

        Returns:
            The trial with its job.

        Raises:
            ServiceError: the job makes no sense, or the user may not submit it.
            pydantic.ValidationError: likewise.
            OSError: the disk is full, say.
        """

    def found(self, trial: TrialRecord, job: JobRecord) -> TrialRecord:
        """A trial with the job that a service submitted for it just before it was killed."""

    def outcome(self, spec: SearchSpec, job: JobRecord) -> Outcome:
        """What a job that has succeeded has come to."""


class JobTrials:
    """Trials whose template is a `JobSpec`; they read their parameters from variables and words.

    Args:
        parts: of the service.
    """

    def __init__(self, parts: "Context") -> None:
        self._parts = parts

    def submit(self, user: UserRecord, search: ExperimentRecord, trial: TrialRecord) -> TrialRecord:  # noqa: D102
        spec = job_of(search.template, search.name, trial.number, trial.parameters)
        key = key_of(search, trial)
        if not search.file_name:
            job, _ = self._parts.submitter.submit(Submission(user, spec, None, key), self._parts.clock())
        else:
            with self._parts.home.experiment(search.id).open("rb") as code:
                job, _ = self._parts.submitter.submit(Submission(user, spec, code, key), self._parts.clock())
        self._parts.changed()
        return replace(trial, job=job.id)

    def found(self, trial: TrialRecord, job: JobRecord) -> TrialRecord:  # noqa: D102
        return replace(trial, job=job.id)

    def outcome(self, spec: SearchSpec, job: JobRecord) -> Outcome:  # noqa: D102
        return reported(self._parts.home.job(job.id).output.events, spec.metric)
