"""Changing a training definition, and sending a new version of its code."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, File, Request, Response, UploadFile
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ServiceError
from edt_launch.service.experiments import definitions, service
from edt_launch.service.experiments.definitions import definition_for
from edt_launch.service.experiments.pages.adding import DefinitionFields
from edt_launch.service.experiments.pages.experiments import after_refusal
from edt_launch.service.experiments.pages.views import definition_form as views
from edt_launch.service.experiments.records import Role
from edt_launch.service.experiments.spec import DefinitionChange, frameworks
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.web import templating
from edt_launch.service.web.form_fields import WRONG, Version, chosen, parsed, words

router = APIRouter(prefix="/experiments/definitions")

Json = dict[str, Any]


class DefinitionForm:
    """What the form was sent with."""

    def __init__(
        self,
        fields: Annotated[DefinitionFields, Depends()],
        version: Version = "",
        code: Annotated[UploadFile | None, File()] = None,
    ) -> None:
        self.values = fields.values
        self.seen = int(version) if version else None
        self.code = chosen(code)

    @property
    def code_name(self) -> str:
        """What the archive is called; empty without one."""
        return (self.code and self.code.filename) or ""

    def changes(self) -> DefinitionChange:
        """The same as REST takes it; raises `InvalidError`."""
        fields = self.values | {"command": words(self.values["command"])}
        changes: DefinitionChange = parsed(DefinitionChange, fields)
        return changes


@router.get("/{definition_id}/edit")
def ask(request: Request, context: ContextDep, user: CurrentUser, definition_id: str) -> Response:
    """The form of a training definition, for editors."""
    definitions.definition_for(context, user, definition_id, Role.EDITOR)
    definition = _shown(context, user, definition_id)
    view = views.form(definition, views.values(definition), frameworks(), definition["version"])
    return templating.page(request, "experiments/definition.html", view=view)


@router.post("/{definition_id}/edit")
async def change(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    definition_id: str,
    given: Annotated[DefinitionForm, Depends()],
) -> Response:
    """Change it, or show the form again with what was wrong."""

    def act() -> str:
        file = None if given.code is None else given.code.file
        return definitions.edit(
            context, user, definition_id, given.changes(), file, given.code_name, given.seen
        ).project

    await run_in_threadpool(definitions.definition_for, context, user, definition_id, Role.EDITOR)
    try:
        project = await context.uploads.run(user.name, act)
    except WRONG as error:
        return _again(request, context, user, definition_id, given, error)
    return RedirectResponse(f"/experiments/projects/{project}", 303)


def _again(
    request: Request,
    context: Context,
    user: UserRecord,
    definition_id: str,
    given: DefinitionForm,
    error: ServiceError,
) -> Response:
    definition = _shown(context, user, definition_id)
    said, seen = after_refusal(
        error, given.seen, definition["version"], views.LABELS,
        given.values | {"code": given.code_name},
        views.values(definition) | {"code": views.present_code(definition) if given.code else ""},
    )  # fmt: skip
    view = views.form(definition, given.values, frameworks(), seen, said)
    return templating.page(request, "experiments/definition.html", status=error.status, view=view)


def _shown(context: Context, user: UserRecord, definition_id: str) -> Json:
    return service.definition(context, definition_for(context, user, definition_id))
