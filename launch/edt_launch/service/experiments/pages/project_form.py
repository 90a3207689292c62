"""Making projects, and changing their names, descriptions and members."""

from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, Field

from edt_launch.service.experiments import projects
from edt_launch.service.experiments.pages.experiments import after_refusal, project_of
from edt_launch.service.experiments.pages.views.experiments import leave_question, member_question
from edt_launch.service.experiments.pages.views.project_form import LABELS, question, values
from edt_launch.service.experiments.records import Role
from edt_launch.service.experiments.spec import ProjectChange, ProjectSpec
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import Text, VersionField, parsed


class ProjectFields(VersionField):
    """Of a project."""

    name: Text = ""
    description: Text = ""

    @property
    def values(self) -> dict[str, str]:
        """What is written, as REST takes it."""
        return {"name": self.name.strip(), "description": self.description.strip()}


class MemberFields(BaseModel):
    """Somebody, and what they are to be; empty: no member any more."""

    user: str = Field("", max_length=64)
    role: Role | Literal[""] = ""


def _ask_new(asked: Asked) -> Question:
    return question(asked.given.values)


def _create(asked: Asked) -> str:
    project = projects.create(asked.context, asked.user, parsed(ProjectSpec, asked.given.values))
    asked.note(project.name)
    return f"/experiments/projects/{project.id}"


def _ask_edit(asked: Asked) -> Question:
    project = vars(projects.project_for(asked.context, asked.user, asked.id, Role.MANAGER))
    if asked.error is None:
        return question(values(project), project, project["version"])
    given, seen = asked.given.values, asked.given.seen
    said, seen = after_refusal(asked.error, seen, project["version"], LABELS, given, values(project))
    return replace(question(given, project, seen), error=said)


def _edit(asked: Asked) -> str:
    change = parsed(ProjectChange, asked.given.values)
    project = projects.change(asked.context, asked.user, asked.id, change, asked.given.seen)
    return f"/experiments/projects/{project.id}"


def _ask_member(asked: Asked) -> Question:
    projects.project_for(asked.context, asked.user, asked.id, Role.MANAGER)
    names = [one.name for one in asked.context.store.accounts.users()]
    return member_question(project_of(asked.context, asked.user, asked.id), names)


def _set_member(asked: Asked) -> str:
    """Add a member, give them another role, or remove them."""
    member, role = asked.given.user, asked.given.role
    projects.project_for(asked.context, asked.user, asked.id, Role.MANAGER)
    if role:
        projects.set_member(asked.context, asked.user, asked.id, member, role)
    else:
        projects.remove_member(asked.context, asked.user, asked.id, member)
    asked.note(f"{member} {role}".strip())
    has_left = not role and member == asked.user.name and not asked.user.is_admin
    return "/experiments" if has_left else f"/experiments/projects/{asked.id}"


def _ask_to_leave(asked: Asked) -> Question:
    return leave_question(project_of(asked.context, asked.user, asked.id))


def _leave(asked: Asked) -> str:
    projects.remove_member(asked.context, asked.user, asked.id, asked.user.name)
    return "/experiments"


router = routes(
    [
        Action("/experiments/new-project", _ask_new, _create, ProjectFields),
        Action("/experiments/projects/{id}/edit", _ask_edit, _edit, ProjectFields),
        Action("/experiments/projects/{id}/members", _ask_member, _set_member, MemberFields),
        Action("/experiments/projects/{id}/leave", _ask_to_leave, _leave),
    ]
)
