"""Projects: who may do what with them, and changing them."""

from collections.abc import Iterable, Mapping
from typing import Any

from edt_launch.core.text.durations import duration
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from edt_launch.service.experiments.records import (
    DefinitionRecord,
    ExperimentRecord,
    MemberRecord,
    ProjectRecord,
    Role,
)
from edt_launch.service.experiments.spec import MAX_MEMBERS, ProjectChange, ProjectSpec
from edt_launch.service.experiments.stores.projects import InUseError
from edt_launch.service.experiments.stores.versioned import RecordT
from edt_launch.service.jobs.submission import new_id

Versioned = ProjectRecord | DefinitionRecord | ExperimentRecord
"""What two people may change at the same time."""


def role_of(context: Context, user: UserRecord, project: ProjectRecord) -> Role | None:
    """What a user is in a project; administrators and its owner are managers. None: no member."""
    if user.is_admin or user.name == project.owner:
        return Role.MANAGER
    return context.store.projects.roles(user.name, [project.id]).get(project.id)


def project_for(context: Context, user: UserRecord, name: str, least: Role = Role.VIEWER) -> ProjectRecord:
    """The project of an id or a name, in which the user has to be `least`.

    Raises:
        NotFoundError: there is none such.
        ForbiddenError: the user is not.
    """
    project = context.store.projects.named(name)
    if project is None:
        raise NotFoundError(
            f"there is no project {name[:80]!r}", "GET /api/v1/projects lists them: `edt project ls`"
        )
    role = role_of(context, user, project)
    if role is None:
        raise ForbiddenError(
            f"{user.name} is no member of the project {project.name!r}", f"ask {project.owner}, its owner"
        )
    if role.rank < least.rank:
        raise ForbiddenError(
            f"{user.name} is {article(role)} of the project {project.name!r}; that takes {article(least)}",
            f"ask {project.owner}, its owner",
        )
    return project


def create(context: Context, user: UserRecord, spec: ProjectSpec) -> ProjectRecord:
    """Make a project, which belongs to the user; `ConflictError` if the name is taken."""
    now = context.clock()
    id_ = "p" + new_id()[1:]
    project = ProjectRecord(id_, spec.name, spec.description, user.name, now, now, user.name)
    if not context.store.projects.add(project):
        raise taken("project", spec.name)
    return project


def change(
    context: Context, user: UserRecord, name: str, changes: ProjectChange, seen: int | None
) -> ProjectRecord:
    """Change a project of which the user has seen a version; None: whichever."""
    project = project_for(context, user, name, Role.MANAGER)
    check_version(project, seen, context.clock())
    now = context.clock()
    values = given(changes, now, user)
    if not differs(project, values):
        return project
    done = context.store.projects.change(project.id, project.version, **values)
    return settled(done, project, context.store.projects.get(project.id), changes.name, "project", now)


def delete(context: Context, user: UserRecord, name: str) -> None:
    """Forget a project that has nothing in it; `ConflictError` names what it has."""
    project = project_for(context, user, name, Role.MANAGER)
    try:
        context.store.projects.delete(project.id)
    except InUseError as error:
        raise ConflictError(
            f"the project {project.name!r} has {_listed(error.names)}",
            "delete its experiments and training definitions first",
        ) from None


def set_member(context: Context, user: UserRecord, name: str, member: str, role: Role) -> ProjectRecord:
    """Have somebody be a member of a project, with a role."""
    project = project_for(context, user, name, Role.MANAGER)
    if context.store.accounts.user(member) is None:
        raise InvalidError(f"there is no user {member!r}", "name somebody who may use the service")
    if member == project.owner:
        raise ConflictError(f"{member} owns the project {project.name!r}", "owners are managers")
    if not context.store.projects.put_member(MemberRecord(project.id, member, role), MAX_MEMBERS):
        raise ConflictError(
            f"the project {project.name!r} has {MAX_MEMBERS} members, or {member} is gone",
            "remove a member first",
        )
    return project


def remove_member(context: Context, user: UserRecord, name: str, member: str) -> None:
    """Have somebody no longer be a member; members may leave by themselves."""
    own = member == user.name
    project = project_for(context, user, name, Role.VIEWER if own else Role.MANAGER)
    if not context.store.projects.remove_member(project.id, member):
        raise NotFoundError(f"{member!r} is no member of the project {project.name!r}", "see its members")


def in_use(name: str, by: Iterable[str], kind: str) -> ConflictError:
    """Something cannot be deleted, since others use it."""
    users = list(by)
    kinds = kind if len(users) == 1 else f"{kind}s"
    return ConflictError(f"{name!r} is used by the {kinds} {_listed(users)}", "take it out of them first")


def taken(kind: str, name: str) -> ConflictError:
    """There is something of that name."""
    return ConflictError(f"name: there is {article(kind)} {name!r} already", "choose another name")


def article(kind: str) -> str:
    """A kind of thing with its article."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def given(changes: Any, now: float, user: UserRecord) -> dict[str, Any]:
    """What is to be written of the fields that a request has, and who changes that when."""
    values = {name: value for name, value in changes.model_dump(mode="json").items() if value is not None}
    if "command" in values:
        values["command"] = tuple(values["command"])
    return {**values, "changed": now, "changed_by": user.name}


def differs(thing: Versioned, values: Mapping[str, Any]) -> bool:
    """Whether something would be other than it is, but for who has changed it when."""
    return any(
        getattr(thing, name) != value
        for name, value in values.items()
        if name not in ("changed", "changed_by")
    )


def check_version(thing: Versioned, seen: int | None, now: float) -> None:
    """Raise `ConflictError`, which says whose change came first, unless the version is the one seen."""
    if seen is not None and seen != thing.version:
        raise _stale(thing, now)


def settled(
    done: bool | None,
    before: RecordT,
    after: RecordT | None,
    name: str | None,
    kind: str,
    now: float,
) -> RecordT:
    """What is there after a change; raises `ConflictError` if it was not carried out."""
    if done is None:
        raise taken(kind, name or before.name)
    if after is None:
        raise NotFoundError(f"{before.name!r} was deleted just now")
    if not done:
        raise _stale(after, now)
    return after


def _stale(thing: Versioned, now: float) -> ConflictError:
    ago = duration(now - thing.changed)
    return ConflictError(
        f"{thing.changed_by} changed {thing.name!r} {ago} ago; it has version {thing.version} now",
        "look at it, and change it again",
    )


def _listed(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
