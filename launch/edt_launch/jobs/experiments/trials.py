"""How trials become jobs: of any program, by the template of a job."""

import json
import re
from dataclasses import replace
from typing import Protocol

from edt_launch.jobs.experiments.decide import Outcome
from edt_launch.jobs.experiments.metric import reported
from edt_launch.service.database.records import JobRecord, UserRecord
from edt_launch.service.database.search_records import SearchRecord, TrialRecord
from edt_launch.service.experiment_spec import SearchSpec, Values
from edt_launch.service.experiments import Parts, key_of
from edt_launch.service.specification import JobSpec
from edt_launch.service.submission import Submission


class Trials(Protocol):
    """What makes jobs of the trials of one kind of experiment."""

    def submit(self, user: UserRecord, search: SearchRecord, trial: TrialRecord) -> TrialRecord:
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

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def submit(self, user: UserRecord, search: SearchRecord, trial: TrialRecord) -> TrialRecord:  # noqa: D102
        spec = job_of(search, trial)
        key = key_of(search, trial)
        if not search.file_name:
            job, _ = self._parts.submitter.submit(Submission(user, spec, None, key), self._parts.clock())
        else:
            with self._parts.home.search(search.id).open("rb") as code:
                job, _ = self._parts.submitter.submit(Submission(user, spec, code, key), self._parts.clock())
        self._parts.changed()
        return replace(trial, job=job.id)

    def found(self, trial: TrialRecord, job: JobRecord) -> TrialRecord:  # noqa: D102
        return replace(trial, job=job.id)

    def outcome(self, spec: SearchSpec, job: JobRecord) -> Outcome:  # noqa: D102
        return reported(self._parts.home.job(job.id).output.events, spec.metric)


def job_of(search: SearchRecord, trial: TrialRecord) -> JobSpec:
    """The job of a trial.

    Raises:
        pydantic.ValidationError: with these parameters it is none.
    """
    template = search.template
    ours = {
        "EDT_EXPERIMENT": search.name,
        "EDT_TRIAL": str(trial.number),
        "EDT_PARAMETERS": json.dumps(trial.parameters, allow_nan=False),
    }
    return JobSpec.model_validate(
        {
            **template,
            "name": f"{template['name'] or search.name}-{trial.number}",
            "command": [filled(word, trial.parameters) for word in template["command"]],
            "environment": {**template["environment"], **ours},
        }
    )


def filled(word: str, parameters: Values) -> str:
    """A word of a command with values instead of parameters' names in braces; other braces stay."""
    return re.sub(r"\{([^{}]+)\}", lambda name: str(parameters.get(name[1], name[0])), word)
