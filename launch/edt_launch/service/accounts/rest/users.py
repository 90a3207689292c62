"""`/api/v1/users`: who may use the service. For administrators, but for one's own password."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from edt_launch.service.accounts import passwords, sessions, tokens
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.accounts.rest import schemas as account_schemas
from edt_launch.service.app.context import Context
from edt_launch.service.cluster.records import ShareRecord
from edt_launch.service.errors import ConflictError, ForbiddenError, InvalidError, NotFoundError
from edt_launch.service.http.dependencies import (
    ContextDep,
    CurrentAdmin,
    CurrentToken,
    CurrentUser,
    SubjectDep,
)
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.jobs.states import LIVE
from edt_launch.service.names import USER as USER_NAME

router = APIRouter(tags=["users"])


@router.get("/users", response_model=account_schemas.Users)
def users(context: ContextDep, user: CurrentAdmin) -> Any:
    """Everybody who may use the service."""
    return {"users": context.store.accounts.users()}


@router.post("/users", status_code=201, response_model=account_schemas.UserWithToken)
def add(
    context: ContextDep,
    user: CurrentAdmin,
    shown: CurrentToken,
    subject: SubjectDep,
    new: account_schemas.NewUser,
) -> Any:
    """Let somebody use the service; the answer has a token for them, which is told only now.

    The token ends with the one that it is made with.
    """
    now = context.clock()
    record = UserRecord(new.name, new.is_admin, now)
    if any(node.parent == new.name for node in context.store.shares.all()):
        raise ConflictError(f"{new.name!r} is a consumer with others below it", "choose another name")
    if not context.store.accounts.add_user(record):
        raise ConflictError(f"there is a user {new.name!r} already", "choose another name")
    context.store.shares.add_missing(ShareRecord(new.name, usage_at=now))
    parent = sessions.origin(context.store.accounts, shown)
    token, kept = tokens.issue(context.store.accounts, new.name, "first", now, parent=parent)
    context.changed()
    subject(f"{new.name} {'administrator' if new.is_admin else 'user'}")
    return {**vars(record), "token": token, "expires": kept.expires}


@router.get("/audit", response_model=account_schemas.Audit)
def audit(
    context: ContextDep,
    user: CurrentAdmin,
    whose: Annotated[
        str | None, Query(alias="user", pattern=f"^{USER_NAME}$", description="Only this user's.")
    ] = None,
    before: Annotated[int | None, Query(ge=1, le=2**53, description="Only those before this number.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Any:
    """Who has changed what: requests that were carried out, the newest first. The latest 100,000 are kept."""
    return {"changes": context.store.audit.newest(limit, before, whose)}


@router.put("/users/{name}/password", status_code=204, response_class=Response)
def set_password(
    context: ContextDep,
    user: CurrentUser,
    shown: CurrentToken,
    name: Annotated[str, Path(pattern=f"^{USER_NAME}$")],
    new: account_schemas.NewPassword,
) -> None:
    """Give a user a password for WMLA's interfaces; one's own, or for administrators anybody's.

    The sessions that were begun with the old one are over. With `revoke_tokens` all of the user's other
    tokens are revoked, too.
    """
    if name != user.name and not user.is_admin:
        raise ForbiddenError(f"only administrators set the password of {name}", "set your own")
    if shown.expires is not None:
        raise ForbiddenError(
            "your token ends, and a password set with it would not", "use a token that does not end"
        )
    give_password(context, name, new, shown.id)


def give_password(context: Context, name: str, new: account_schemas.NewPassword, spared: str) -> None:
    """Set a user's password; with `revoke_tokens`, their tokens but for the `spared` one are revoked."""
    if len(new.password) < (least := context.settings.least_password):
        text = f"password: it has {len(new.password)} characters; {least} are needed"
        raise InvalidError(text, "choose a longer one")
    if new.password.startswith(tokens.PREFIX):
        raise InvalidError(f"password: it begins with {tokens.PREFIX}, as tokens do", "choose another one")
    is_known = context.store.accounts.set_password(
        name,
        passwords.hash_of(new.password),
        context.clock(),
        tokens_too=new.revoke_tokens,
        spared=spared,
    )
    if not is_known:
        raise NotFoundError(f"there is no user {name!r}", "GET /api/v1/users lists them")


@router.delete("/users/{name}", status_code=204, response_class=Response)
def remove(
    context: ContextDep, user: CurrentAdmin, name: Annotated[str, Path(pattern=f"^{USER_NAME}$")]
) -> None:
    """Let somebody no longer use the service: their tokens open nothing any more."""
    if name == user.name:
        raise ConflictError("you cannot remove yourself", "have another administrator do it")
    if context.store.jobs.page(JobQuery(states=LIVE, owners=[name], limit=1)).jobs:
        raise ConflictError(f"{name} has jobs that have not ended", "stop them first")
    if not context.store.accounts.remove_user(name):
        raise NotFoundError(f"there is no user {name!r}", "GET /api/v1/users lists them")
    context.store.shares.remove(name)
    context.changed()
