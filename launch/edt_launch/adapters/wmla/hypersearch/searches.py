"""Creating and restarting searches, and how their trials become jobs: execs that read `config.json`."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path

from edt_launch.adapters.wmla.hypersearch.definition import parse
from edt_launch.adapters.wmla.hypersearch.views import SEARCH_STATES
from edt_launch.adapters.wmla.submission import submitting
from edt_launch.adapters.wmla.submission.request import ExecRequest, FormPart, model_of, with_names
from edt_launch.core.files import plain_files
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.app.home import SEARCH_ID
from edt_launch.service.errors import ConflictError, InvalidError
from edt_launch.service.experiments.records import ExperimentRecord, RunRecord
from edt_launch.service.experiments.searches import service as searches
from edt_launch.service.experiments.searches.decide import TrialOutcome
from edt_launch.service.experiments.searches.spec import Objective, SearchSpec
from edt_launch.service.jobs.records import JobRecord

KIND = "wmla"
"""Of these searches, in `ExperimentRecord.kind`."""

RESERVED = "algorithm"
"""A name that is a path of its own in the interface."""

METRIC_FILE = "val_dict_list.json"
MAX_METRICS = 16 * 2**20
"""Bytes that are read of the file: it is the trial's own, and whatever is in it costs that trial alone."""

CONFIG = "config.json"
"""Where a trial's program finds its hyperparameters, in its work dir."""


def create_search(
    context: Context, user: UserRecord, data: str, parts: Sequence[FormPart]
) -> ExperimentRecord:
    """Queue a search.

    Args:
        context, user: the service's parts; whose it will be.
        data: its definition, as JSON.
        parts: what its trials run, as for `submitting.submit`, which raises the same errors.
    """
    if not data:
        raise InvalidError("data: the form has no such field", "send the search's definition in it, as JSON")
    definition = parse(data)
    spec = definition.model_spec
    if spec.sig_name:
        submitting.group_name(spec.sig_name)
    if definition.hpo_name == RESERVED:
        raise InvalidError(f"hpoName: {RESERVED!r} is reserved", "take another name")
    if definition.hpo_name and re.fullmatch(SEARCH_ID, definition.hpo_name):
        raise InvalidError(f"hpoName: {definition.hpo_name!r} looks like an id", "take another name")
    asked = ExecRequest(spec.args, group=spec.sig_name or None)
    model = model_of(with_names(parts, asked.main), asked.main)
    if model is None:
        raise submitting.nothing_sent()
    code, file_name = model.file, model.name[-255:]
    submitting.check(context, user, replace(asked, file_name=file_name), code, [CONFIG])
    now = context.clock()
    search = searches.record_of(
        user, definition.spec, now, kind=KIND, template=spec.model_dump(), file_name=file_name
    )
    made = (f"{user.name}-hpo-{number}" for number in count(int(now * 1e6)))
    added = searches.create(context, search, code, [definition.hpo_name] if definition.hpo_name else made)
    if added is None:
        raise ConflictError(
            f"hpoName: there is a search {definition.hpo_name!r} already", "take another name"
        )
    return added


def restart(context: Context, search: ExperimentRecord) -> list[searches.Deletion]:
    """Have a search go on that was stopped, has failed, or waits for better times; what has finished stays.

    Raises:
        InvalidError: there is nothing to go on with.
        ConflictError: jobs of it have not ended yet, or somebody else was quicker.
    """
    again = searches.to_try_again(search, context.store.experiments.trials(search.id))
    if again is None:
        raise InvalidError(
            f"Hpo task {search.name} is {SEARCH_STATES[search.state]}",
            "only one that is STOPPED, FAILED or RECOVERPEND can be started again",
        )
    with as_hpo_task():
        return searches.go_on(context, search, again)


@contextmanager
def as_hpo_task() -> Iterator[None]:
    """Call a search in errors what WMLA calls it; they begin with its name."""
    try:
        yield
    except ConflictError as error:
        raise ConflictError(f"Hpo task {error.detail}", error.next_step) from None


class ExecTrials:
    """Implements `experiments.searches.trials.Trials`."""

    def __init__(self, context: Context) -> None:
        self._context = context

    def submit(self, user: UserRecord, search: ExperimentRecord, trial: RunRecord) -> None:  # noqa: D102
        config = json.dumps(trial.parameters, indent=2, allow_nan=False).encode()
        # The script may be given words after `--`, so the variables come first.
        variables = f"--msd-env TRAINING_ID={search.name} --msd-env SUBID={trial.place}"
        args, group = f"{variables} {search.template['args']}", search.template["sig_name"] or None
        asked = ExecRequest(args, group=group, file_name=search.file_name)
        with self._context.home.search(search.id).open("rb") as code:
            submitting.submit(self._context, user, asked, code, {CONFIG: config}, trial)

    def outcome(self, spec: SearchSpec, job: JobRecord) -> TrialOutcome:  # noqa: D102
        return read_metric(self._context.home.job(job.id).root, spec.metric, spec.objective)


def read_metric(folder: Path, name: str, objective: Objective) -> TrialOutcome:
    """The best value of the metric `name` in the file of a trial's result folder."""
    try:
        content = plain_files.read(folder / METRIC_FILE, MAX_METRICS + 1)
    except FileNotFoundError:
        return TrialOutcome(reason=f"the program has not written {METRIC_FILE} into $RESULT_DIR")
    except OSError as error:
        return TrialOutcome(reason=f"{METRIC_FILE} cannot be read: {error.strerror}")
    return find_metric(content, name, objective)


def find_metric(content: bytes, name: str, objective: Objective) -> TrialOutcome:
    """The same from the file's content."""
    if len(content) > MAX_METRICS:
        return TrialOutcome(reason=f"{METRIC_FILE} has more than {MAX_METRICS:,} bytes")
    try:
        entries = json.loads(content)
    except (ValueError, RecursionError) as error:
        return TrialOutcome(reason=f"{METRIC_FILE} is no JSON: {error}")
    if not isinstance(entries, list):
        return TrialOutcome(reason=f"{METRIC_FILE} is no list of objects like {{'steps': 1, {name!r}: 0.5}}")
    values = [entry[name] for entry in entries if isinstance(entry, dict) and name in entry]
    numbers = [number for number in map(_number, values) if number is not None]
    if not numbers:
        kind = "is no finite number there" if values else "is not in it"
        return TrialOutcome(reason=f"{METRIC_FILE}: the metric {name!r} {kind}")
    return TrialOutcome(min(numbers, key=lambda number: objective.sign * number))


def _number(given: object) -> float | None:
    """A finite number, which may be a text, as in definitions; None for anything else."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        number = float(given)
    except (OverflowError, ValueError):
        return None
    return number if math.isfinite(number) else None
