"""Changing a training definition, and sending a new version of its code."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edt_launch.core.text.byte_sizes import byte_size
from edt_launch.service.experiments import definitions
from edt_launch.service.experiments.pages.adding import DefinitionFields
from edt_launch.service.experiments.pages.experiments import after_refusal, project_of
from edt_launch.service.experiments.pages.views.experiment_form import framework_field
from edt_launch.service.experiments.records import DefinitionRecord, Role
from edt_launch.service.experiments.spec import DefinitionChange
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Field
from edt_launch.service.web.crumbs import Crumb
from edt_launch.service.web.crumbs import project as crumbs
from edt_launch.service.web.form_fields import CodeField, VersionField, parsed, words

LABELS = {
    "name": "name", "description": "description", "framework": "framework", "command": "execution command",
    "code": "code",
}  # fmt: skip
"""What is compared if two people have changed a training definition."""


class ChangeFields(DefinitionFields, VersionField, CodeField):
    """What the form was sent with."""


@dataclass(frozen=True)
class DefinitionView:
    """The form of a training definition.

    Attributes:
        values: of the form's fields.
        seen: the version that these are about.
        code: the present version of its code, in words.
        error: what was wrong with what the form was sent with.
    """

    definition: DefinitionRecord
    values: Mapping[str, str]
    framework: Field
    seen: int | None
    code: str
    crumbs: Sequence[Crumb]
    error: str = ""


def _ask(asked: Asked) -> DefinitionView:
    definition = definitions.definition_for(asked.context, asked.user, asked.id, Role.EDITOR)
    fields = ("name", "description", "framework")
    values = {name: getattr(definition, name) for name in fields}
    values |= {"command": shlex.join(definition.command)}
    said, code = "", _present_code(asked, definition)
    seen: int | None = definition.version
    if asked.error is not None:
        given, (_, sent) = asked.given.values, asked.given.archive
        present = values | {"code": code if sent else ""}
        said, seen = after_refusal(
            asked.error, asked.given.seen, definition.version, LABELS, given | {"code": sent}, present
        )
        values = given
    project = project_of(asked.context, asked.user, definition.project)
    framework, above = framework_field(values["framework"]), crumbs(project["id"], project["name"])
    return DefinitionView(definition, values, framework, seen, code, above, said)


def _present_code(asked: Asked, definition: DefinitionRecord) -> str:
    """The version of its code that a definition runs, in words; empty without one."""
    code = asked.context.store.definitions.code(definition.id, definition.code)
    if code is None:
        return ""
    told = f"{code.name or 'archive'}, {byte_size(code.size)}, of {code.owner}"
    return f"version {code.place} ({told}, {code.digest[:12]})"


def _change(asked: Asked) -> str:
    definitions.definition_for(asked.context, asked.user, asked.id, Role.EDITOR)
    fields = asked.given.values | {"command": words(asked.given.values["command"])}
    changes = parsed(DefinitionChange, fields)
    file, name = asked.given.archive
    changed = definitions.change(
        asked.context, asked.user, asked.id, changes, asked.given.seen, file, name, with_present_code=True
    )
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
