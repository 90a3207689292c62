"""Experiments: making, changing and running them. A run is an ordinary job."""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context, may
from edt_launch.service.data import folders as data_folder
from edt_launch.service.errors import ConflictError, InvalidError, NotFoundError
from edt_launch.service.experiments.definitions import opened
from edt_launch.service.experiments.projects import check_version, differs, given, project_for, settled, taken
from edt_launch.service.experiments.records import (
    CodeRecord,
    DefinitionRecord,
    ExperimentRecord,
    Role,
    RunRecord,
    TrainingRecord,
)
from edt_launch.service.experiments.searches import service as searches
from edt_launch.service.experiments.searches.service import Deletion, new_run_id, not_theirs
from edt_launch.service.experiments.spec import (
    HOROVOD,
    ExperimentChange,
    ExperimentSpec,
    RunSpec,
    TrainingSpec,
)
from edt_launch.service.experiments.stores.experiments import GoneError
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.specification import JobSpec
from edt_launch.service.jobs.submission import Submission, new_id

KIND = "experiment"
DATA_DIR = "DATA_DIR"
"""The variable that names the folder of data."""


@dataclass(frozen=True)
class Planned:
    """A run that is going to be started."""

    experiment: ExperimentRecord
    definition: str
    name: str
    code: CodeRecord | None
    spec: JobSpec


def experiment_for(
    context: Context, user: UserRecord, experiment_id: str, least: Role = Role.VIEWER
) -> ExperimentRecord:
    """The experiment of an id, in whose project the user has to be `least`; a search of theirs.

    Raises:
        NotFoundError: there is none such.
        ForbiddenError: the user is not, or it is the search of somebody else.
    """
    experiment = context.store.experiments.get(experiment_id)
    if experiment is None:
        raise NotFoundError(
            f"there is no experiment {experiment_id[:80]!r}",
            "GET /api/v1/experiments lists them: `edt experiment ls`",
        )
    if experiment.project is not None:
        project_for(context, user, experiment.project, least)
    elif not may(user, experiment):
        raise not_theirs(experiment)
    return experiment


def started_by_hand(context: Context, user: UserRecord, experiment_id: str) -> ExperimentRecord:
    """As `experiment_for` an editor, of one that is no search; `ConflictError` if it is one."""
    experiment = experiment_for(context, user, experiment_id, Role.EDITOR)
    if experiment.algorithm:
        raise ConflictError(
            f"{experiment.name!r} is a search: it starts its own trials and stays as it was created",
            "create another search: `edt search create`",
        )
    return experiment


def run_for(context: Context, user: UserRecord, run_id: str, least: Role = Role.VIEWER) -> RunRecord:
    """The run of an id, in whose project the user has to be `least`; raises like `experiment_for`."""
    run = context.store.experiments.run(run_id)
    if run is None:
        raise NotFoundError(
            f"there is no run {run_id[:80]!r}", "GET /api/v1/experiments/{id}/runs lists those of one"
        )
    experiment_for(context, user, run.experiment, least)
    return run


def create(context: Context, user: UserRecord, spec: ExperimentSpec) -> ExperimentRecord:
    """Make an experiment.

    Raises:
        ServiceError: it could not be run, the user may not do that, or the name is taken.
    """
    experiment = _new(context, user, spec)
    trainings = _records(experiment.id, spec.trainings)
    plan(context, experiment, trainings, RunSpec())
    if not context.store.experiments.add(experiment, trainings):
        plan(context, experiment, trainings, RunSpec())  # a definition was deleted meanwhile, or else
        raise taken(KIND, spec.name)
    return experiment


def check(context: Context, user: UserRecord, spec: ExperimentSpec) -> None:
    """Raise as `create` would, and make nothing."""
    experiment = _new(context, user, spec)
    plan(context, experiment, _records(experiment.id, spec.trainings), RunSpec())
    if context.store.experiments.named_in(str(experiment.project), spec.name) is not None:
        raise taken(KIND, spec.name)


def _new(context: Context, user: UserRecord, spec: ExperimentSpec) -> ExperimentRecord:
    project = project_for(context, user, spec.project, Role.EDITOR)
    now = context.clock()
    return ExperimentRecord(
        "x" + new_id()[1:],
        project.id,
        spec.name,
        spec.description,
        data_folder.normal(spec.source),
        tuple(spec.command),
        spec.metric,
        spec.objective or "",
        user.name,
        now,
        now,
        user.name,
    )


def change(
    context: Context, user: UserRecord, experiment_id: str, changes: ExperimentChange, seen: int | None
) -> ExperimentRecord:
    """Change an experiment of which the user has seen a version; None: whichever."""
    experiment = started_by_hand(context, user, experiment_id)
    now = context.clock()
    check_version(experiment, seen, now)
    values = given(changes, now, user)
    values.pop("trainings", None)
    if "objective" in changes.model_fields_set:
        values["objective"] = changes.objective or ""
    if "source" in values:
        values["source"] = data_folder.normal(values["source"])
    trainings = None if changes.trainings is None else _records(experiment.id, changes.trainings)
    present = context.store.experiments.trainings(experiment.id)
    if not differs(experiment, values) and trainings in (None, present):
        return experiment
    known = present if trainings is None else trainings
    plan(context, ExperimentRecord(**vars(experiment) | values), known, RunSpec())
    done = context.store.experiments.change_with(experiment.id, experiment.version, trainings, **values)
    after = context.store.experiments.get(experiment.id)
    if done is None:  # a definition was deleted meanwhile, or the name is taken
        plan(context, experiment, known, RunSpec())
    return settled(done, experiment, after, changes.name, KIND, now)


def delete(context: Context, user: UserRecord, experiment_id: str) -> list[Deletion]:
    """Forget an experiment and its runs, whose jobs stay unless it is a search.

    Raises:
        ConflictError: some have not ended.
    """
    experiment = experiment_for(context, user, experiment_id, Role.EDITOR)
    if experiment.algorithm:
        return searches.delete(context, experiment)
    if live := context.store.experiments.delete(experiment.id):
        raise ConflictError(
            f"{experiment.name!r} has runs that have not ended: {', '.join(live[:10])}", "stop them first"
        )
    return []


def delete_run(context: Context, user: UserRecord, run_id: str) -> None:
    """Forget a run, whose job stays; `ConflictError` if it has not ended."""
    run = run_for(context, user, run_id, Role.EDITOR)
    started_by_hand(context, user, run.experiment)
    if run.job in context.store.experiments.live_jobs(run.experiment):
        raise ConflictError(f"the run {run.id} has not ended: it is the job {run.job}", "stop it first")
    context.store.experiments.delete_run(run.id)


def plan(
    context: Context, experiment: ExperimentRecord, trainings: Sequence[TrainingRecord], wanted: RunSpec
) -> list[Planned]:
    """The runs that starting an experiment would make.

    Raises:
        InvalidError: one of them would be no job, or has no command.
    """
    source = data_folder.folder(context.settings.data_folder, experiment.source)
    chosen = [one for one in trainings if wanted.definitions is None or one.definition in wanted.definitions]
    missing = set(wanted.definitions or ()) - {one.definition for one in chosen}
    if missing:
        raise InvalidError(
            f"definitions: {', '.join(sorted(missing))} is none of {experiment.name!r}", "add it first"
        )
    known = context.store.definitions.some([one.definition for one in chosen])
    planned = []
    for training in chosen:
        definition = known.get(training.definition)
        if definition is None or definition.project != experiment.project:
            raise InvalidError(
                f"trainings: there is no training definition {training.definition!r} in the project",
                "GET /api/v1/definitions lists them",
            )
        code = context.store.definitions.code(definition.id, definition.code) if definition.code else None
        spec = job_of(experiment, definition, training, source, wanted)
        planned.append(Planned(experiment, definition.id, definition.name, code, spec))
    return planned


def planned_runs(context: Context, user: UserRecord, experiment_id: str, wanted: RunSpec) -> list[Planned]:
    """The runs that a user would start; raises like `plan`, and if they may not, or there are none."""
    experiment = started_by_hand(context, user, experiment_id)
    planned = plan(context, experiment, context.store.experiments.trainings(experiment.id), wanted)
    if not planned:
        raise ConflictError(
            f"{experiment.name!r} has no training definition", "add one: `edt experiment add`"
        )
    return planned


def planned_again(context: Context, user: UserRecord, run_id: str) -> list[Planned]:
    """The run that is the same as another one: the same code, command and size."""
    run = run_for(context, user, run_id, Role.EDITOR)
    experiment = started_by_hand(context, user, run.experiment)
    code = context.store.definitions.code(run.definition, run.code) if run.code else None
    if run.code and code is None:
        raise ConflictError(
            f"the training definition {run.name!r} was deleted, and its code", "run another definition"
        )
    source = run.spec.get("data_dir") or run.spec["environment"].get(DATA_DIR)
    root = context.settings.data_folder
    if source and Path(source).is_relative_to(root):  # a run may have named another place, on other hosts
        data_folder.folder(root, os.path.relpath(source, root))
    return [Planned(experiment, run.definition, run.name, code, JobSpec.model_validate(run.spec))]


@contextmanager
def submissions(
    context: Context, user: UserRecord, planned: Sequence[Planned], key: str | None = None
) -> Iterator[list[Submission]]:
    """The jobs that are to be submitted, with their code open. `key`: of the attempt to start them all."""
    with ExitStack() as stack:
        yield [
            Submission(
                user,
                one.spec,
                stack.enter_context(opened(context, one.definition, one.code)),
                None if key is None else _key(key, one.experiment.id, place),
                _run(context, user, one),
            )
            for place, one in enumerate(planned)
        ]


def has_begun(context: Context, user: UserRecord, experiment_id: str, key: str) -> bool:
    """Whether the user has started runs of an experiment with that key before, all of them or some."""
    return context.store.jobs.submitted_as(user.name, _key(key, experiment_id, 0)) is not None


def _key(key: str, experiment: str, place: int) -> str:
    """The idempotency key of one of the jobs of an attempt; users' keys have no blanks."""
    return f"{hashlib.sha256(key.encode()).hexdigest()[:32]} {experiment} {place}"


def start(
    context: Context, user: UserRecord, planned: Sequence[Planned], key: str | None = None
) -> list[RunRecord]:
    """Submit the jobs of runs, and write the runs down; those that were started with that key before stay.

    Each job is written down with its run, one after the other: a service that is killed has started some,
    and starts the rest when it is asked again with the same key.

    Raises:
        ServiceError: one of the jobs could not be submitted, and none was.
        OSError: the disk is full, say.
    """
    with submissions(context, user, planned, key) as submitted:
        if len(submitted) > 1:
            for submission in submitted:
                context.submitter.rehearse(submission)
        started = []
        for one, submission in zip(planned, submitted, strict=True):
            try:
                job, _ = context.submitter.submit(submission, context.clock())
            except GoneError:
                raise ConflictError(f"{one.experiment.name!r} was deleted just now") from None
            context.changed()
            started.append(_run_of(context, job))
    return started


def _run_of(context: Context, job: JobRecord) -> RunRecord:
    known = context.store.experiments.runs_of_jobs([job.id]).get(job.id)
    if known is None:
        raise ConflictError(f"the run of {job.id} was forgotten meanwhile", "start another one")
    return known


def _run(context: Context, user: UserRecord, planned: Planned) -> RunRecord:
    """A run that is to be started; which job it is shows when that is written down."""
    code = planned.code
    return RunRecord(
        new_run_id(),
        planned.experiment.id,
        planned.definition,
        planned.name,
        0 if code is None else code.place,
        "" if code is None else code.digest,
        None,
        user.name,
        context.clock(),
        planned.spec.model_dump(mode="json"),
    )


def job_of(
    experiment: ExperimentRecord,
    definition: DefinitionRecord,
    training: TrainingRecord,
    source: Path,
    wanted: RunSpec,
) -> JobSpec:
    """The job of a run; `InvalidError` if it would be none."""
    command = wanted.command or experiment.command or definition.command
    if not command:
        raise InvalidError(
            f"the training definition {definition.name!r} has no command, and neither has the experiment",
            "give one of them a command",
        )
    values: dict[str, Any] = {
        "command": list(command),
        "name": wanted.name or definition.name,
        "min": training.least,
        "max": training.most,
        "priority": wanted.priority,
        **run_fields(definition.framework, source, wanted.environment),
    }
    try:
        return JobSpec.model_validate(values)
    except ValidationError as error:
        one = error.errors()[0]
        where = "".join(f"{part}: " for part in one["loc"])
        said = str(one["msg"]).removeprefix("Value error, ")
        raise InvalidError(
            f"{definition.name!r} could not be run: {where}{said}", "change the experiment or the definition"
        ) from None


def run_fields(framework: str, source: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """Fields of the job of a training definition's code: its framework, its data and its variables."""
    if framework == HOROVOD:
        return {"environment": {DATA_DIR: str(source), **environment}}
    return {"environment": environment, "framework": framework, "data_dir": str(source)}


def _records(experiment: str, trainings: Sequence[TrainingSpec]) -> list[TrainingRecord]:
    return [
        TrainingRecord(experiment, place, one.definition, one.distribution, one.devices, *one.bounds)
        for place, one in enumerate(trainings)
    ]
