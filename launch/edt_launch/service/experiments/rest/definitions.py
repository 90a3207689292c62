"""`/api/v1/definitions`: training definitions, whose codes are kept for ever."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, BackgroundTasks, File, Form, Query, Response, UploadFile
from pydantic import Json

from edt_launch.service.app.context import Context
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.experiments import definitions, service
from edt_launch.service.experiments.records import DefinitionRecord
from edt_launch.service.experiments.rest import schemas
from edt_launch.service.experiments.spec import DefinitionChange, DefinitionSpec
from edt_launch.service.http.dependencies import ContextDep, CurrentUser, SubjectDep, carry_out, page_of
from edt_launch.service.http.versions import Seen, tag
from edt_launch.service.names import MAX_NAME, PLAIN

router = APIRouter(tags=["definitions"])

ProjectName = Annotated[
    str | None, Query(max_length=MAX_NAME, description="Only of this project, by its id or name.")
]
OwnName = Annotated[
    str | None, Query(max_length=MAX_NAME, pattern=f"^{PLAIN}$", description="Only of this name.")
]
Code = Annotated[UploadFile, File(description="tar, tar.gz or zip.")]


@router.post("/definitions", status_code=201, response_model=schemas.DefinitionWithCodes)
async def create(
    context: ContextDep,
    user: CurrentUser,
    subject: SubjectDep,
    response: Response,
    spec: Annotated[Json[DefinitionSpec], Form(description="The definition, as JSON.")],
    code: Annotated[UploadFile | None, File(description="Its code: tar, tar.gz or zip.")] = None,
) -> Any:
    """Make a training definition."""
    file, name = (None, "") if code is None else (code.file, code.filename or "")
    make = partial(definitions.create, context, user, spec, file, name)
    definition = await context.uploads.run(user.name, make)
    subject(f"{definition.id} {definition.name}")
    return _shown(context, definition, response)


@router.get("/definitions", response_model=schemas.Definitions)
def list_definitions(
    context: ContextDep,
    user: CurrentUser,
    page: Annotated[PageQuery, page_of("Definitions")],
    project: ProjectName = None,
    name: OwnName = None,
) -> Any:
    """The training definitions of projects that the user is a member of."""
    return service.definitions_page(context, user, project, name, page)


@router.get("/definitions/{definition_id}", response_model=schemas.DefinitionWithCodes)
def show(context: ContextDep, user: CurrentUser, response: Response, definition_id: str) -> Any:
    """A training definition and its codes."""
    return _shown(context, definitions.definition_for(context, user, definition_id), response)


@router.patch("/definitions/{definition_id}", response_model=schemas.DefinitionWithCodes)
def change(
    context: ContextDep,
    user: CurrentUser,
    response: Response,
    definition_id: str,
    changes: DefinitionChange,
    seen: Seen,
) -> Any:
    """Change a training definition, but for its code."""
    changed = definitions.change(context, user, definition_id, changes, seen)
    return _shown(context, changed, response)


@router.post("/definitions/{definition_id}/code", response_model=schemas.DefinitionWithCodes)
async def set_code(
    context: ContextDep,
    user: CurrentUser,
    response: Response,
    definition_id: str,
    code: Code,
    seen: Seen,
) -> Any:
    """Have it run other code from now on; code that it has had before is not kept twice."""
    own, file, name = (context, user, definition_id), code.file, code.filename or ""
    make = partial(definitions.change, *own, DefinitionChange(), seen, file, name)
    return _shown(context, await context.uploads.run(user.name, make), response)


@router.delete("/definitions/{definition_id}", status_code=204, response_class=Response)
def delete(context: ContextDep, user: CurrentUser, definition_id: str, afterwards: BackgroundTasks) -> None:
    """Forget a training definition that no experiment uses, and its codes. Its runs stay."""
    carry_out([definitions.delete(context, user, definition_id)], afterwards)


def _shown(context: Context, definition: DefinitionRecord, response: Response) -> Any:
    tag(response, definition.version)
    return service.definition(context, definition)
