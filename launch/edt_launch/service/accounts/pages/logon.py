"""Logging on and off."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import APIRouter, Form, Query, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from edt_launch.service.accounts import sessions, tokens
from edt_launch.service.app.context import Context
from edt_launch.service.errors import ForbiddenError, LockedError, ServiceError, UnauthorizedError
from edt_launch.service.http.dependencies import ContextDep, CurrentToken, CurrentUser
from edt_launch.service.web import templating

router = APIRouter()

Text = Annotated[str, Form(max_length=2048)]


def own_path(text: str) -> str:
    """Where to go after logging on: `text` if it is a path of the service, else its first page."""
    try:
        parts = urlsplit(text)
    except ValueError:
        return "/"
    is_path = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable()
    return text if is_path and not parts.scheme and not parts.netloc and "\\" not in text else "/"


@router.get("/logon")
def show(
    request: Request,
    goal: Annotated[str, Query(alias="next", max_length=2048)] = "/",
    once: Annotated[str, Query(max_length=128)] = "",
) -> Response:
    """The form; of a link that logs on once, a button. Looking at the page does not use the link up."""
    return _form(request, goal, once=once)


@router.post("/logon")
async def log_on(
    request: Request,
    context: ContextDep,
    name: Text = "",
    secret: Text = "",
    once: Text = "",
    goal: Annotated[str, Form(alias="next", max_length=2048)] = "/",
) -> Response:
    """Begin a session, or show the form again with what was wrong."""
    try:
        cookie = await _session(request, context, name.strip(), secret.strip(), once)
    except (ForbiddenError, LockedError, UnauthorizedError) as error:
        return _form(request, goal, name=name, error=error)
    answer = RedirectResponse(own_path(goal), 303)
    answer.set_cookie(
        sessions.cookie_name(context.url),
        cookie,
        max_age=int(sessions.LASTS),
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


@router.post("/logoff")
def log_off(context: ContextDep, user: CurrentUser, session: CurrentToken) -> Response:
    """End this session."""
    context.store.accounts.end_session(user.name, session.hash, context.clock())
    answer = RedirectResponse("/logon", 303)
    answer.delete_cookie(sessions.cookie_name(context.url), path="/")
    return answer


async def _session(request: Request, context: Context, name: str, secret: str, once: str) -> str:
    accounts, now = context.store.accounts, context.clock()
    if once:
        return await run_in_threadpool(sessions.begin_with_link, accounts, once, now)
    if secret.startswith(tokens.PREFIX):
        bearer = await run_in_threadpool(tokens.bearer, accounts, secret, now)
        if bearer is None or name not in ("", bearer[0].name):
            raise UnauthorizedError("unknown or expired token, or another user's", "check both")
        return await run_in_threadpool(sessions.begin, accounts, bearer[0].name, now, parent=bearer[1])
    address = request.client.host if request.client else ""
    password_hash = await request.app.state.password_logon.check(name, secret, address)
    return await run_in_threadpool(sessions.begin, accounts, name, now, password_hash=password_hash)


def _form(
    request: Request,
    goal: str,
    name: str = "",
    once: str = "",
    error: ServiceError | None = None,
) -> Response:
    return templating.page(
        request,
        "logon.html",
        status=200 if error is None else error.status,
        goal=own_path(goal),
        name=name,
        once=once,
        error=error,
    )
