"""Making projects, and changing their names, descriptions and members."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

from pydantic import BaseModel, Field

from edt_launch.service.errors import InvalidError
from edt_launch.service.experiments import projects
from edt_launch.service.experiments.pages.experiments import after_refusal
from edt_launch.service.experiments.records import ProjectRecord, Role
from edt_launch.service.experiments.spec import ProjectChange, ProjectSpec
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Field as Input
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import Text, VersionField, parsed

LABELS = {"name": "name", "description": "description"}
"""What is compared if two people have changed a project."""


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


def _question(
    given: Mapping[str, str], project: ProjectRecord | None = None, seen: int | None = None
) -> Question:
    """The form with what it was sent with: of a new project, or of one in a version that was seen."""
    fields = [
        Input("name", "Name", given["name"], False, is_required=True),
        Input("description", "Description", given["description"], False),
    ]
    if project is None:
        return Question("New project", "", (), "/experiments", fields, button="Create")
    hidden = [("version", "" if seen is None else str(seen))]
    back = f"/experiments/projects/{project.id}"
    return Question("Edit", project.name, (), back, fields, hidden, button="Save")


def _ask_new(asked: Asked) -> Question:
    return _question(asked.given.values)


def _create(asked: Asked) -> str:
    project = projects.create(asked.context, asked.user, parsed(ProjectSpec, asked.given.values))
    asked.note(project.name)
    return f"/experiments/projects/{project.id}"


def _ask_edit(asked: Asked) -> Question:
    project = projects.project_for(asked.context, asked.user, asked.id, Role.MANAGER)
    present = {name: getattr(project, name) for name in LABELS}
    if asked.error is None:
        return _question(present, project, project.version)
    given, seen = asked.given.values, asked.given.seen
    said, seen = after_refusal(asked.error, seen, project.version, LABELS, given, present)
    return replace(_question(given, project, seen), error=said)


def _edit(asked: Asked) -> str:
    change = parsed(ProjectChange, asked.given.values)
    project = projects.change(asked.context, asked.user, asked.id, change, asked.given.seen)
    return f"/experiments/projects/{project.id}"


def _ask_member(asked: Asked) -> Question:
    project = projects.project_for(asked.context, asked.user, asked.id, Role.MANAGER)
    users = asked.context.store.accounts.users()
    choices = [(one.name, one.name) for one in users if one.name != project.owner]
    choices.insert(0, ("", "Choose a user"))
    role = Role.EDITOR if asked.error is None else asked.given.role
    roles = [(str(role), str(role)) for role in Role] + [("", "Remove from project")]
    fields = [
        Input("user", "User", asked.given.user, False, choices, is_required=True),
        Input("role", "Role", str(role), False, roles),
    ]
    address = f"/experiments/projects/{project.id}"
    return Question("Members of", project.name, (), address, fields, button="Save")


def _set_member(asked: Asked) -> str:
    """Add a member, give them another role, or remove them."""
    member, role = asked.given.user, asked.given.role
    projects.project_for(asked.context, asked.user, asked.id, Role.MANAGER)
    if not member:
        raise InvalidError("user: none is chosen", "choose a user")
    if role:
        projects.set_member(asked.context, asked.user, asked.id, member, role)
    else:
        projects.remove_member(asked.context, asked.user, asked.id, member)
    asked.note(f"{member} {role}".strip())
    has_left = not role and member == asked.user.name and not asked.user.is_admin
    return "/experiments" if has_left else f"/experiments/projects/{asked.id}"


def _ask_to_leave(asked: Asked) -> Question:
    project = projects.project_for(asked.context, asked.user, asked.id)
    effect = f"You see what is in it no more, until {project.owner} adds you again. Your jobs stay yours."
    return Question("Leave", project.name, [effect], f"/experiments/projects/{project.id}")


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
