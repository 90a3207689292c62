"""Who may use the service; for administrators."""

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts import schemas as account_schemas
from edt_launch.service.accounts import service
from edt_launch.service.accounts.pages.new_token_cookie import clear, redirect_with, token_of
from edt_launch.service.accounts.pages.views import account, users
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.cluster import pictures
from edt_launch.service.errors import ConflictError, InvalidError, NotFoundError
from edt_launch.service.http import problems
from edt_launch.service.http.dependencies import ContextDep, CurrentAdmin, CurrentToken, SubjectDep
from edt_launch.service.web import templating
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question

router = APIRouter()

WEEK = 7 * 86400.0

CHANGES = 100
"""Changes of a page."""


@router.get("/users")
async def show(request: Request, context: ContextDep, user: CurrentAdmin) -> Response:
    """Everybody who may use the service, and the first token of somebody who has just been added."""
    fresh = token_of(request)
    answer = await _page(request, context, fresh=fresh)
    return clear(request, answer) if fresh else answer


@router.post("/users")
async def add(
    request: Request,
    context: ContextDep,
    user: CurrentAdmin,
    session: CurrentToken,
    subject: SubjectDep,
    name: Annotated[str, Form(max_length=256)] = "",
    is_admin: Annotated[bool, Form()] = False,
) -> Response:
    """Let somebody use the service; or show the form again with what was wrong."""
    try:
        wanted = account_schemas.NewUser(name=name.strip(), is_admin=is_admin)
        new = await run_in_threadpool(service.add_user, context, session, wanted)
        subject(f"{wanted.name} {'administrator' if is_admin else 'user'}")
    except ValidationError as error:
        told = problems.invalid(error.errors()).detail
    except ConflictError as error:
        told = error.message
    else:
        return redirect_with(request, "/users", account.Fresh(new["name"], new["token"]))
    return await _page(request, context, error=told, name=name, is_admin=is_admin)


def user_of(context: Context, name: str) -> UserRecord:
    """The user of a name; raises `NotFoundError`."""
    user = context.store.accounts.user(name)
    if user is None:
        raise NotFoundError(
            f"there is no user {name[:64]!r}", "look at the page of users for those that there are"
        )
    return user


def _ask_to_remove(asked: Asked) -> Question:
    return users.removal(user_of(asked.context, asked.id).name)


def _remove(asked: Asked) -> str:
    service.remove_user(asked.context, asked.user, asked.id)
    return "/users"


router.include_router(routes([Action("/users/{id}/remove", _ask_to_remove, _remove, is_for_admins=True)]))


@router.get("/users/changes")
def changes(
    request: Request,
    context: ContextDep,
    user: CurrentAdmin,
    before: Annotated[int | None, Query(ge=1, le=2**53)] = None,
) -> Response:
    """Who has changed what."""
    found = context.store.audit.newest(CHANGES, before)
    older = found[-1].number if len(found) == CHANGES else None
    return templating.page(request, "changes.html", changes=found, older=older)


async def _page(
    request: Request,
    context: Context,
    *,
    fresh: account.Fresh | None = None,
    error: str = "",
    name: str = "",
    is_admin: bool = False,
) -> Response:
    had = await pictures.latest(context, WEEK)

    def made() -> Response:
        accounts, store = context.store.accounts, context.store
        hours = {one["owner"]: one["hours"] for one in had["owners"]}
        rows = users.rows(
            accounts.users(),
            accounts.tokens(),
            store.jobs.holders(),
            store.shares.all(),
            hours,
            context.clock(),
        )
        status = InvalidError.status if error else 200
        return templating.page(
            request,
            "users.html",
            notify=context.settings.notify,
            status=status,
            rows=rows,
            fresh=fresh,
            error=error,
            name=name,
            is_admin=is_admin,
        )

    return await run_in_threadpool(made)
