"""`/api/v1/users`: who may use the service. For administrators, but for one's own password."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response

from edt_launch.service.accounts import schemas as account_schemas
from edt_launch.service.accounts import service
from edt_launch.service.errors import ForbiddenError
from edt_launch.service.http.dependencies import (
    ContextDep,
    CurrentAdmin,
    CurrentToken,
    CurrentUser,
    SubjectDep,
)
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
    added = service.add_user(context, shown, new)
    subject(f"{new.name} {'administrator' if new.is_admin else 'user'}")
    return added


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
    service.check_self_or_admin(user, name, "set the password of", "set your own")
    if shown.expires is not None:
        raise ForbiddenError(
            "your token ends, and a password set with it would not", "use a token that does not end"
        )
    service.give_password(context, name, new, shown.id)


@router.delete("/users/{name}", status_code=204, response_class=Response)
def remove(
    context: ContextDep, user: CurrentAdmin, name: Annotated[str, Path(pattern=f"^{USER_NAME}$")]
) -> None:
    """Let somebody no longer use the service: their tokens open nothing any more."""
    service.remove_user(context, user, name)
