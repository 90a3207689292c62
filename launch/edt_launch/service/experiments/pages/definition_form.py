"""Changing a training definition, and sending a new version of its code."""

from typing import Any

from edt_launch.service.experiments import definitions, service
from edt_launch.service.experiments.pages.adding import DefinitionFields
from edt_launch.service.experiments.pages.experiments import after_refusal
from edt_launch.service.experiments.pages.views import definition_form as views
from edt_launch.service.experiments.records import Role
from edt_launch.service.experiments.spec import DefinitionChange, frameworks
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.form_fields import CodeField, VersionField, parsed, words

Json = dict[str, Any]


class ChangeFields(DefinitionFields, VersionField, CodeField):
    """What the form was sent with."""


def _definition(asked: Asked) -> Json:
    found = definitions.definition_for(asked.context, asked.user, asked.id, Role.EDITOR)
    return service.definition(asked.context, found)


def _ask(asked: Asked) -> views.DefinitionView:
    definition = _definition(asked)
    present = views.values(definition)
    if asked.error is None:
        return views.form(definition, present, frameworks(), definition["version"])
    given, (_, sent) = asked.given.values, asked.given.archive
    said, seen = after_refusal(
        asked.error, asked.given.seen, definition["version"], views.LABELS,
        given | {"code": sent},
        present | {"code": views.present_code(definition) if sent else ""},
    )  # fmt: skip
    return views.form(definition, given, frameworks(), seen, said)


def _change(asked: Asked) -> str:
    _definition(asked)
    fields = asked.given.values | {"command": words(asked.given.values["command"])}
    changes = parsed(DefinitionChange, fields)
    file, name = asked.given.archive
    changed = definitions.edit(asked.context, asked.user, asked.id, changes, file, name, asked.given.seen)
    return f"/experiments/projects/{changed.project}"


router = routes(
    [
        Action(
            "/experiments/definitions/{id}/edit",
            _ask,
            _change,
            ChangeFields,
            starts_jobs=True,
            template="experiments/definition.html",
        )
    ]
)
