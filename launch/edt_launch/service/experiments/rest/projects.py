"""`/api/v1/projects`: who works together on experiments, and what each may do."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.experiments import projects, service
from edt_launch.service.experiments.records import ProjectRecord
from edt_launch.service.experiments.rest import schemas
from edt_launch.service.experiments.spec import Membership, ProjectChange, ProjectSpec
from edt_launch.service.http.dependencies import ContextDep, CurrentUser, SubjectDep, page_of
from edt_launch.service.http.versions import Seen, tag
from edt_launch.service.names import USER

router = APIRouter(tags=["projects"])

UserName = Annotated[str, Path(pattern=f"^{USER}$")]


@router.post("/projects", status_code=201, response_model=schemas.ProjectWithMembers)
def create(
    context: ContextDep, user: CurrentUser, subject: SubjectDep, response: Response, spec: ProjectSpec
) -> Any:
    """Make a project, which is the user's."""
    project = projects.create(context, user, spec)
    subject(f"{project.id} {project.name}")
    return _shown(context, user, project, response)


@router.get("/projects", response_model=schemas.Projects)
def list_projects(
    context: ContextDep, user: CurrentUser, page: Annotated[PageQuery, page_of("Projects")]
) -> Any:
    """The projects that the user is a member of; for administrators, all."""
    return service.projects_page(context, user, page)


@router.get("/projects/{project_id}", response_model=schemas.ProjectWithMembers)
def show(context: ContextDep, user: CurrentUser, response: Response, project_id: str) -> Any:
    """A project, by its id or name, and its members."""
    return _shown(context, user, projects.project_for(context, user, project_id), response)


@router.patch("/projects/{project_id}", response_model=schemas.ProjectWithMembers)
def change(
    context: ContextDep,
    user: CurrentUser,
    response: Response,
    project_id: str,
    changes: ProjectChange,
    seen: Seen,
) -> Any:
    """Change a project's name or description."""
    return _shown(context, user, projects.change(context, user, project_id, changes, seen), response)


@router.delete("/projects/{project_id}", status_code=204, response_class=Response)
def delete(context: ContextDep, user: CurrentUser, project_id: str) -> None:
    """Forget a project that has neither experiments nor training definitions."""
    projects.delete(context, user, project_id)


@router.put("/projects/{project_id}/members/{name}", response_model=schemas.ProjectWithMembers)
def set_member(
    context: ContextDep,
    user: CurrentUser,
    response: Response,
    project_id: str,
    name: UserName,
    membership: Membership,
) -> Any:
    """Have somebody be a member, or give them another role."""
    project = projects.set_member(context, user, project_id, name, membership.role)
    return _shown(context, user, project, response)


@router.delete("/projects/{project_id}/members/{name}", status_code=204, response_class=Response)
def remove_member(context: ContextDep, user: CurrentUser, project_id: str, name: UserName) -> None:
    """Have somebody no longer be a member; members may leave."""
    projects.remove_member(context, user, project_id, name)


def _shown(context: Context, user: UserRecord, project: ProjectRecord, response: Response) -> Any:
    tag(response, project.version)
    return service.project(context, user, project)
