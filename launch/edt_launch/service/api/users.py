"""`/api/v1/users`: who may use the service. For administrators."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Response

from edt_launch.service import tokens
from edt_launch.service.api import schemas, views
from edt_launch.service.api.context import Admin, Here
from edt_launch.service.database.records import ShareRecord, UserRecord
from edt_launch.service.errors import ConflictError, NotFoundError
from edt_launch.service.names import USER
from edt_launch.service.states import LIVE

router = APIRouter(tags=["users"])


@router.get("/users", response_model=schemas.Users)
def users(here: Here, user: Admin) -> Any:
    """Everybody who may use the service."""
    return {"users": [views.user(one) for one in here.store.accounts.users()]}


@router.post("/users", status_code=201, response_model=schemas.UserWithToken)
def add(here: Here, user: Admin, new: schemas.NewUser) -> Any:
    """Let somebody use the service; the answer has a token for them, which is told only now."""
    now = here.clock()
    record = UserRecord(new.name, new.is_admin, now)
    if not here.store.accounts.add_user(record):
        raise ConflictError(f"there is a user {new.name!r} already", "choose another name")
    here.store.shares.add_missing(ShareRecord(new.name, usage_at=now))
    token, _ = tokens.issue(here.store.accounts, new.name, "first", now)
    here.changed()
    return {**views.user(record), "token": token}


@router.delete("/users/{name}", status_code=204, response_class=Response)
def remove(here: Here, user: Admin, name: Annotated[str, Path(pattern=f"^{USER}$")]) -> None:
    """Let somebody no longer use the service: his tokens open nothing any more."""
    if name == user.name:
        raise ConflictError("you cannot remove yourself", "have another administrator do it")
    if here.store.jobs.page(states=LIVE, owner=name, limit=1).jobs:
        raise ConflictError(f"{name} has jobs that have not ended", "stop them first")
    if not here.store.accounts.remove_user(name):
        raise NotFoundError(f"there is no user {name!r}", "GET /api/v1/users lists them")
    here.store.shares.remove(name)
    here.changed()
