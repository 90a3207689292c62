"""Who is logged on: their browsers and tokens, and how this browser shows pages."""

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from edt_launch.service.accounts import schemas as account_schemas
from edt_launch.service.accounts import service
from edt_launch.service.accounts.pages.logon import own_path
from edt_launch.service.accounts.pages.new_token_cookie import clear, redirect_with, token_of
from edt_launch.service.accounts.pages.views import account as views
from edt_launch.service.accounts.records import TokenRecord, UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.errors import InvalidError, NotFoundError
from edt_launch.service.http import problems
from edt_launch.service.http.dependencies import SUBJECT, ContextDep, CurrentToken, CurrentUser
from edt_launch.service.web import templating, theme
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question

router = APIRouter()

THEMES = {"auto": "as the system says", "light": "light", "dark": "dark"}

DAY = 86400.0

MAX_DAYS = 36_500
"""Days after which a token ends at the latest, if it does by itself."""

Text = Annotated[str, Form(max_length=256)]


@router.get("/account")
def show(request: Request, context: ContextDep, user: CurrentUser, session: CurrentToken) -> Response:
    """The account, with its sessions and tokens, and a token that has just been made."""
    fresh = token_of(request)
    answer = _page(request, context, user, session, fresh=fresh)
    return clear(request, answer) if fresh else answer


@router.post("/account/end-others")
def end_others(context: ContextDep, user: CurrentUser, session: CurrentToken) -> Response:
    """End all of the user's other sessions."""
    context.store.accounts.end_browsers(user.name, session.id, context.clock())
    return RedirectResponse("/account", 303)


@router.post("/account/theme")
def set_theme(
    user: CurrentUser, chosen: Annotated[theme.Theme, Form(alias="theme")], back: Text = "/account"
) -> Response:
    """Have this browser's pages light, dark, or as its system says."""
    answer = RedirectResponse(own_path(back), 303)
    theme.remember(answer, chosen)
    return answer


@router.post("/account/tokens")
def add_token(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    session: CurrentToken,
    name: Text = "",
    days: Text = "",
    scope: Text = "all",
) -> Response:
    """Make a token, which the account shows once; or show the form again with what was wrong."""
    try:
        asked = {"name": name.strip(), "expires": _ends(days, context.clock()), "scope": scope}
        request.scope[SUBJECT] = f"{name.strip()} ({scope})"
        new = service.add_token(context, user, session, account_schemas.NewToken.model_validate(asked))
    except ValidationError as error:
        told = problems.invalid(error.errors()).detail
    except InvalidError as error:
        told = error.message
    else:
        return redirect_with(request, "/account", views.Fresh(user.name, new["token"]))
    return _page(request, context, user, session, error=told, name=name, days=days, scope=scope)


def _ask_to_revoke(asked: Asked) -> Question:
    tokens = asked.context.store.accounts.tokens(asked.user.name)
    found = next((one for one in tokens if one.id == asked.id), None)
    if found is None:
        raise _no_token(asked.id)
    return views.revocation(found)


def _revoke(asked: Asked) -> str:
    """Let a token open nothing any more, nor what was made with it."""
    if not asked.context.store.accounts.revoke(asked.id, asked.user.name, asked.context.clock()):
        raise _no_token(asked.id)
    return "/account"


def _no_token(id_: str) -> NotFoundError:
    return NotFoundError(f"you have no token {id_[:16]!r}", "look at your account for those that you have")


router.include_router(routes([Action("/account/tokens/{id}/revoke", _ask_to_revoke, _revoke)]))


def _ends(days: str, now: float) -> float | None:
    """When a token ends that lasts for so many days; None if nothing is said."""
    if not days.strip():
        return None
    try:
        count = float(days)
    except ValueError:
        count = float("nan")
    if not 0 < count <= MAX_DAYS:
        raise InvalidError(
            f"days: {days!r} is no number above 0 and at most {MAX_DAYS}",
            "leave it empty for a token that does not end by itself",
        )
    return now + count * DAY


def _page(
    request: Request,
    context: Context,
    user: UserRecord,
    session: TokenRecord,
    *,
    fresh: views.Fresh | None = None,
    error: str = "",
    name: str = "",
    days: str = "",
    scope: str = "all",
) -> Response:
    known, now = context.store.accounts.tokens(user.name), context.clock()
    newest = sorted((one for one in known if one.opens(now)), key=lambda one: one.created, reverse=True)
    return templating.page(
        request,
        "account.html",
        status=InvalidError.status if error else 200,
        session=session,
        sessions=[one for one in newest if one.is_browser],
        tokens=[one for one in newest if not one.is_browser],
        names={one.id: one.name or one.id for one in known},
        themes=THEMES,
        fresh=fresh,
        error=error,
        name=name,
        days=days,
        scope=scope,
        scopes=views.MAY,
    )
