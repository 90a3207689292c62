"""Changing a project's name and description."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from edt_launch.service.experiments import projects
from edt_launch.service.experiments.pages.experiments import after_refusal, project_of
from edt_launch.service.experiments.pages.views.project_form import LABELS, question, values
from edt_launch.service.experiments.records import Role
from edt_launch.service.experiments.spec import ProjectChange
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.web import templating
from edt_launch.service.web.form_fields import WRONG, Value, Version, parsed

router = APIRouter(prefix="/experiments/projects")


@router.get("/{project_id}/edit")
def ask(request: Request, context: ContextDep, user: CurrentUser, project_id: str) -> Response:
    """The form of a project, for its managers."""
    project = vars(projects.project_for(context, user, project_id, Role.MANAGER))
    view = question(project, values(project), project["version"])
    return templating.page(request, "act.html", view=view)


@router.post("/{project_id}/edit")
def change(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    project_id: str,
    name: Value = "",
    description: Value = "",
    version: Version = "",
) -> Response:
    """Change it, or show the form again with what was wrong."""
    given = {"name": name.strip(), "description": description.strip()}
    seen = int(version) if version else None
    try:
        changed = projects.change(context, user, project_id, parsed(ProjectChange, given), seen)
    except WRONG as error:
        project = project_of(context, user, project_id)
        said, seen = after_refusal(error, seen, project["version"], LABELS, given, values(project))
        view = question(project, given, seen, said)
        return templating.page(request, "act.html", status=error.status, view=view)
    return RedirectResponse(f"/experiments/projects/{changed.id}", 303)
