"""Starting a search in a form."""

import shlex
from typing import Any

from pydantic import Field, create_model

from edt_launch.service.data import folders as data_folder
from edt_launch.service.errors import ForbiddenError, InvalidError, NotFoundError
from edt_launch.service.experiments import definitions, experiments
from edt_launch.service.experiments.experiments import run_fields
from edt_launch.service.experiments.pages.views import new_search as views
from edt_launch.service.experiments.records import DefinitionRecord, ExperimentRecord, Role
from edt_launch.service.experiments.searches import service as searches
from edt_launch.service.experiments.searches.trial_job import SubmittedSearch
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.form_fields import CodeField, KeyField, Text, new_key, parsed, words

COLUMNS = ("parameter", "kind", "values", "low", "high", "step")
"""Fields of a parameter, as the form sends them: a list each."""


class _Base(KeyField, CodeField):
    definition: str = Field("", max_length=16)
    job: str = Field("", max_length=16)
    experiment: str = Field("", max_length=16)

    @property
    def texts(self) -> dict[str, str]:
        """What is written, but for the parameters."""
        return {name: getattr(self, name).strip() for name in views.LABELS}

    @property
    def rows(self) -> list[views.Row]:
        """The parameters; raises `InvalidError`."""
        columns = [getattr(self, name) for name in COLUMNS]
        if len({len(column) for column in columns}) > 1:
            raise InvalidError("parameters: their fields do not belong together", "use the form of this page")
        return [views.Row(*(cell.strip() for cell in row)) for row in zip(*columns, strict=True)]


_fields: dict[str, Any] = {
    **dict.fromkeys(views.LABELS, (Text, "")),
    **{name: (Text, first) for name, first in views.UNSENT.items()},
    **{name: (list[Text], Field([], max_length=views.MAX_ROWS)) for name in COLUMNS},
}
SearchFields = create_model("SearchFields", __base__=_Base, **_fields)


def _ask(asked: Asked) -> views.NewSearch:
    """The form, with the command and the files of a job or of a training definition if one is named."""
    given = asked.given
    if asked.error is not None:
        try:
            definition = _definition(asked) if given.definition else None
        except (ForbiddenError, NotFoundError):  # that is the error which is told
            definition = None
        return views.new_search(new_key(), given.texts, given.rows, definition)
    if given.definition:
        return _of_definition(asked)
    texts = {}
    if given.job:
        job = asked.context.job_of(given.job, asked.user)
        texts = {"code_of": job.id, "command": shlex.join(job.command), "min": str(job.min)}
        texts["max"] = str(job.max)
    return views.new_search(new_key(), texts)


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


def _of_definition(asked: Asked) -> views.NewSearch:
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
    return views.new_search(new_key(), given, definition=definition)


def _spec(asked: Asked, fields: dict[str, Any]) -> SubmittedSearch:
    """The search as REST takes it; `fields` are more of its job. Raises `InvalidError`."""
    texts = {field: text for field, text in asked.given.texts.items() if text and field != "source"}
    command = words(texts.pop("command", ""))
    own: dict[str, Any] = {
        field: texts.pop(field) for field in ("code_of", "min", "max", "priority") if field in texts
    }
    search = {
        **texts,
        "parameters": views.parameters(asked.given.rows),
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
