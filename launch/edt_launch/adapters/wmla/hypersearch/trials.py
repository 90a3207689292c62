"""How trials of WMLA's searches become jobs: as execs, whose programs read `config.json`."""

import json
from dataclasses import replace

from edt_launch.adapters.wmla.hypersearch.metric import read
from edt_launch.adapters.wmla.submission import submitting
from edt_launch.adapters.wmla.submission.request import ExecRequest
from edt_launch.jobs.experiments.decide import Outcome
from edt_launch.service.api.context import Context
from edt_launch.service.database.records import ExperimentRecord, JobRecord, TrialRecord, UserRecord
from edt_launch.service.experiment_spec import SearchSpec
from edt_launch.service.experiments import key_of

CONFIG = "config.json"
"""Where a trial's program finds its hyperparameters, in its work dir."""


class ExecTrials:
    """Implements `jobs.experiments.trials.Trials`.

    Args:
        context: the service's parts.
    """

    def __init__(self, context: Context) -> None:
        self._context = context

    def submit(self, user: UserRecord, search: ExperimentRecord, trial: TrialRecord) -> TrialRecord:  # noqa: D102
        config = json.dumps(trial.parameters, indent=2, allow_nan=False).encode()
        # The script may be given words after `--`, so the variables come first.
        variables = f"--msd-env TRAINING_ID={search.name} --msd-env SUBID={trial.number}"
        args, group = f"{variables} {search.template['args']}", search.template["sig_name"] or None
        asked = ExecRequest(args, group=group, file_name=search.file_name)
        with self._context.home.experiment(search.id).open("rb") as code:
            record = submitting.submit(
                self._context, user, asked, code, {CONFIG: config}, key_of(search, trial)
            )
        return replace(trial, exec=record.id, driver=record.driver, job=record.job)

    def found(self, trial: TrialRecord, job: JobRecord) -> TrialRecord:  # noqa: D102
        names = self._context.store.execs.of([job.id]).get(job.id)
        if names is None:
            return replace(trial, exec=job.id, job=job.id)
        return replace(trial, exec=names.id, driver=names.driver, job=job.id)

    def outcome(self, spec: SearchSpec, job: JobRecord) -> Outcome:  # noqa: D102
        return read(self._context.home.job(job.id).root, spec.metric, spec.objective)
