"""Setting passwords: one's own, and for administrators anybody's, by whoever proves again who they are.

A session is not enough for that: it ends, and a password set with it would not.
"""

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts import schemas as account_schemas
from edt_launch.service.accounts import tokens
from edt_launch.service.accounts.pages.views.account import password_question
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.accounts.service import give_password
from edt_launch.service.app.context import Context
from edt_launch.service.errors import (
    ForbiddenError,
    InvalidError,
    LockedError,
    NotFoundError,
    UnauthorizedError,
)
from edt_launch.service.http import problems
from edt_launch.service.http.dependencies import ContextDep, CurrentAdmin, CurrentToken, CurrentUser
from edt_launch.service.web import templating

router = APIRouter()

Secret = Annotated[str, Form(max_length=2048)]


@router.get("/account/password")
def ask_own(request: Request, user: CurrentUser) -> Response:
    """The form for one's own password."""
    return templating.page(request, "act.html", view=password_question(user.name, is_own=True))


@router.post("/account/password")
async def set_own(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    session: CurrentToken,
    secret: Secret = "",
    password: Secret = "",
) -> Response:
    """Set it: sessions end by that, this one too."""
    error = await _set(request, context, user, session.id, user.name, secret, password)
    if error is None:
        return RedirectResponse("/logon", 303)
    view = password_question(user.name, error, is_own=True)
    return templating.page(request, "act.html", status=InvalidError.status, view=view)


@router.get("/users/{name}/password")
def ask(request: Request, context: ContextDep, user: CurrentAdmin, name: str) -> Response:
    """The form for somebody's password."""
    if context.store.accounts.user(name) is None:
        raise NotFoundError(
            f"there is no user {name[:64]!r}", "look at the page of users for those that there are"
        )
    return templating.page(request, "act.html", view=password_question(name))


@router.post("/users/{name}/password")
async def reset(
    request: Request,
    context: ContextDep,
    user: CurrentAdmin,
    session: CurrentToken,
    name: str,
    secret: Secret = "",
    password: Secret = "",
) -> Response:
    """Set it: that user's sessions end."""
    error = await _set(request, context, user, session.id, name, secret, password)
    if error is None:
        return RedirectResponse("/users", 303)
    view = password_question(name, error)
    return templating.page(request, "act.html", status=InvalidError.status, view=view)


async def _set(
    request: Request, context: Context, user: UserRecord, session: str, name: str, secret: str, password: str
) -> str | None:
    """Have `user` set the password of the user of a name; what was wrong, None for nothing."""
    try:
        await _prove(request, context, user, secret)
        new = account_schemas.NewPassword(password=password)
        await run_in_threadpool(give_password, context, name, new, session)
    except ValidationError as error:
        return problems.invalid(error.errors()).detail
    except (ForbiddenError, InvalidError, LockedError, UnauthorizedError) as error:
        return error.message
    return None


async def _prove(request: Request, context: Context, user: UserRecord, secret: str) -> None:
    """See whether a secret is the user's password, or a token of theirs that does not end."""
    if not secret.startswith(tokens.PREFIX):
        address = request.client.host if request.client else ""
        await request.app.state.password_logon.check(user.name, secret, address)
        return
    bearer = await run_in_threadpool(tokens.bearer, context.store.accounts, secret, context.clock())
    if bearer is None or bearer[0].name != user.name:
        raise UnauthorizedError("unknown or expired token, or not yours", "check it")
    if bearer[1].expires is not None:
        raise UnauthorizedError("the token ends, and a password set with it would not", "use another one")
    tokens.check_scope(bearer[1], request.method)
