"""Starting a search in a form."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import Field, create_model

from edt_launch.service.data import folders as data_folder
from edt_launch.service.data import service as data
from edt_launch.service.errors import ForbiddenError, InvalidError, NotFoundError
from edt_launch.service.experiments import definitions, experiments
from edt_launch.service.experiments.experiments import run_fields
from edt_launch.service.experiments.records import DefinitionRecord, ExperimentRecord, Role
from edt_launch.service.experiments.searches import service as searches
from edt_launch.service.experiments.searches.spec import Algorithm, Objective
from edt_launch.service.experiments.searches.trial_job import SubmittedSearch
from edt_launch.service.jobs import service as jobs
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Field as Input
from edt_launch.service.web.crumbs import EXPERIMENTS, Crumb
from edt_launch.service.web.form_fields import CodeField, KeyField, Text, new_key, parsed, words

ROWS, MAX_ROWS = 6, 64
"""Rows for parameters that the form has at least and at most."""

KINDS = {
    "values": "a list of values",
    "float": "a number from … to …",
    "int": "a whole number from … to …",
    "powers": "a number from 10^… to 10^… (log scale)",
}
"""What a parameter is chosen from."""

LABELS: Mapping[str, str] = {
    "name": "Name",
    "command": "Command; {rate} stands for the parameter rate",
    "code_of": "Or the files of your job (id)",
    "source": "Data folder",
    "metric": "Metric that the script reports",
    "objective": "Goal",
    "algorithm": "Algorithm",
    "max_trials": "Maximum trials",
    "max_parallel": "Parallel trials",
    "max_minutes": "Maximum minutes (empty: no limit)",
    "max_budget": "Maximum budget (hyperband)",
    "seed": "Seed (empty: any)",
    "min": "Minimum workers of a trial",
    "max": "Maximum workers of a trial",
    "priority": "Priority (higher first)",
}

FIRST: Mapping[str, str] = {
    "objective": "minimize", "algorithm": "random", "max_trials": "20", "max_parallel": "2", "min": "1",
    "max": "1", "priority": "0",
}  # fmt: skip
"""What the form begins with."""

UNSENT: Mapping[str, str] = {**FIRST, "max_trials": "", "max_parallel": "1"}
"""What stands for fields that are not sent."""

TEXTS = frozenset({"name", "command", "code_of", "source", "metric"})
REQUIRED = frozenset({"command", "metric"})

OPTIONS: Mapping[str, Sequence[tuple[str, str]]] = {
    "objective": [(str(one), str(one)) for one in Objective],
    "algorithm": [(str(one), str(one)) for one in Algorithm if one is not Algorithm.LIST],
}


@dataclass(frozen=True)
class Row:
    """A parameter, as it was written."""

    name: str = ""
    kind: str = "values"
    values: str = ""
    low: str = ""
    high: str = ""
    step: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was written in it."""
        return not (self.name or self.values or self.low or self.high or self.step)

    def range(self) -> dict[str, Any]:
        """What it is chosen from, like `search_spec.Parameter`; raises `InvalidError`."""
        if self.kind == "values":
            if not self.values:
                raise InvalidError(
                    f"parameters: {self.name}: there are no values", "write some with commas between"
                )
            return {"values": [_value(text.strip()) for text in self.values.split(",")]}
        ends = {"min": self._number("low", self.low), "max": self._number("high", self.high)}
        step = {"step": self._number("step", self.step)} if self.step else {}
        if self.kind not in KINDS:
            raise InvalidError(
                f"parameters: {self.name}: {self.kind!r} is no way to choose",
                f"use one of {', '.join(KINDS)}",
            )
        base = {"base": 10} if self.kind == "powers" else {}
        return {"type": "int" if self.kind == "int" else "float", **ends, **step, **base}

    def _number(self, field: str, text: str) -> float:
        value = _value(text)
        if isinstance(value, str):
            raise InvalidError(f"parameters: {self.name}: {field}: {text!r} is no number", "write one")
        return value


def _parameters(rows: Sequence[Row]) -> dict[str, dict[str, Any]]:
    """What parameters are chosen from, by their names; empty rows are left out.

    Raises:
        InvalidError: a row has no name, or that of another one, or makes no sense.
    """
    found: dict[str, dict[str, Any]] = {}
    places: dict[str, int] = {}
    for place, row in enumerate(rows, 1):
        if row.is_empty:
            continue
        if not row.name:
            raise InvalidError(f"parameters: row {place} has no name", "write one, or empty the row")
        if row.name in places:
            raise InvalidError(
                f"parameters: rows {places[row.name]} and {place} are both called {row.name!r}",
                "give one of them another name, or empty it",
            )
        places[row.name] = place
        found[row.name] = row.range()
    return found


def _value(text: str) -> float | str:
    """A number if it is one; JSON's true, null and the like are texts, too."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, int | float) and not isinstance(value, bool) else text


@dataclass(frozen=True)
class NewSearch:
    """The form: fields before the file, between it and the parameters, and after these.

    `key` is of the search that it starts, `definition` the training definition that trials are runs of, if
    they are; `filled` rows have a parameter, and one more is shown unless somebody adds another.
    """

    key: str
    before: Sequence[Input]
    job: Sequence[Input]
    search: Sequence[Input]
    rows: Sequence[Row]
    filled: int
    definition: DefinitionRecord | None
    error: str = ""
    kinds: ClassVar[Mapping[str, str]] = KINDS
    above: ClassVar[Sequence[Crumb]] = (EXPERIMENTS,)


def _form(
    asked: Asked,
    given: Mapping[str, str],
    rows: Sequence[Row] = (),
    definition: DefinitionRecord | None = None,
) -> NewSearch:
    """The form with what it was sent with."""
    folders = data.offered(asked.context, asked.user) if definition else ()
    suggested = {
        "code_of": jobs.suggested(asked.context, asked.user),
        "source": [(folder, "") for folder in folders],
    }
    values = {**FIRST, **given}
    fields = {
        name: Input(
            name,
            label,
            values.get(name, ""),
            name not in TEXTS,
            OPTIONS.get(name, ()),
            "",
            name in REQUIRED,
            suggested.get(name, ()),
        )
        for name, label in LABELS.items()
    }
    source = fields.pop("source")
    own = ("code_of", "min", "max", "priority")
    used = max((place for place, row in enumerate(rows, 1) if not row.is_empty), default=0)
    shown = min(max(ROWS, used + 1), MAX_ROWS)
    return NewSearch(
        new_key(),
        [fields.pop("name"), fields.pop("command"), *([source] if definition else [])],
        [fields.pop(name) for name in own],
        list(fields.values()),
        [*rows[:used], *[Row()] * (shown - used)],
        used,
        definition,
    )


COLUMNS = ("parameter", "kind", "values", "low", "high", "step")
"""Fields of a parameter, as the form sends them: a list each."""


class _Base(KeyField, CodeField):
    definition: str = Field("", max_length=16)
    job: str = Field("", max_length=16)
    experiment: str = Field("", max_length=16)

    @property
    def texts(self) -> dict[str, str]:
        """What is written, but for the parameters."""
        return {name: getattr(self, name).strip() for name in LABELS}

    @property
    def rows(self) -> list[Row]:
        """The parameters; raises `InvalidError`."""
        columns = [getattr(self, name) for name in COLUMNS]
        if len({len(column) for column in columns}) > 1:
            raise InvalidError("parameters: their fields do not belong together", "use the form of this page")
        return [Row(*(cell.strip() for cell in row)) for row in zip(*columns, strict=True)]


_fields: dict[str, Any] = {
    **dict.fromkeys(LABELS, (Text, "")),
    **{name: (Text, first) for name, first in UNSENT.items()},
    **{name: (list[Text], Field([], max_length=MAX_ROWS)) for name in COLUMNS},
}
SearchFields = create_model("SearchFields", __base__=_Base, **_fields)


def _ask(asked: Asked) -> NewSearch:
    """The form, with the command and the files of a job or of a training definition if one is named."""
    given = asked.given
    if asked.error is not None:
        try:
            definition = _definition(asked) if given.definition else None
        except (ForbiddenError, NotFoundError):  # that is the error which is told
            definition = None
        return _form(asked, given.texts, given.rows, definition)
    if given.definition:
        return _of_definition(asked)
    texts = {}
    if given.job:
        job = asked.context.job_of(given.job, asked.user)
        texts = {"code_of": job.id, "command": shlex.join(job.command), "min": str(job.min)}
        texts["max"] = str(job.max)
    return _form(asked, texts)


def _create(asked: Asked) -> str:
    search = _submit(asked)
    asked.note(search.id)
    return f"/experiments/{search.id}"


def _submit(asked: Asked) -> ExperimentRecord:
    context, user, given = asked.context, asked.user, asked.given
    file, _ = given.archive
    if not given.definition:
        return searches.submit(context, user, _spec(asked, {}), file, given.key or None)
    definition = _definition(asked)
    source = data_folder.folder(context.settings.data_folder, given.texts["source"])
    spec = _spec(asked, run_fields(definition.framework, source, {}))
    is_other = file is not None or spec.job.code_of is not None
    known = None if is_other else context.store.definitions.code(definition.id, definition.code)
    with definitions.opened(context, definition.id, known) as kept:
        return searches.submit(context, user, spec, file or kept, given.key or None)


def _definition(asked: Asked) -> DefinitionRecord:
    return definitions.definition_for(asked.context, asked.user, asked.given.definition, Role.EDITOR)


def _of_definition(asked: Asked) -> NewSearch:
    """The form with a training definition as an experiment has it, if one is named."""
    definition = _definition(asked)
    given = {"command": shlex.join(definition.command)}
    if asked.given.experiment:
        experiment = experiments.experiment_for(asked.context, asked.user, asked.given.experiment)
        given |= {
            "source": experiment.source,
            "command": shlex.join(experiment.command or definition.command),
        }
        for one in asked.context.store.experiments.trainings(experiment.id):
            if one.definition == definition.id:
                given |= {"min": str(one.least), "max": str(one.most)}
    return _form(asked, given, definition=definition)


def _spec(asked: Asked, fields: dict[str, Any]) -> SubmittedSearch:
    """The search as REST takes it; `fields` are more of its job. Raises `InvalidError`."""
    texts = {field: text for field, text in asked.given.texts.items() if text and field != "source"}
    command = words(texts.pop("command", ""))
    own: dict[str, Any] = {
        field: texts.pop(field) for field in ("code_of", "min", "max", "priority") if field in texts
    }
    search = {
        **texts,
        "parameters": _parameters(asked.given.rows),
        "job": {**own, **fields, "command": command},
    }
    return parsed(SubmittedSearch, search)


router = routes(
    [
        Action(
            "/experiments/new-search",
            _ask,
            _create,
            SearchFields,
            starts_jobs=True,
            template="experiments/new_search.html",
        )
    ]
)
