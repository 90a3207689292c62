"""Who is logged on: their browsers and tokens, and how this browser shows pages."""

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import ValidationError

from edt_launch.service.api import problems, schemas
from edt_launch.service.api import tokens as rest
from edt_launch.service.api.dependencies import ContextDep, CurrentToken, CurrentUser
from edt_launch.service.context import Context
from edt_launch.service.database.records import TokenRecord, UserRecord
from edt_launch.service.errors import InvalidError, NotFoundError
from edt_launch.service.web import templating, theme
from edt_launch.service.web.views import account as views

router = APIRouter()

THEMES = {"auto": "as the system says", "light": "light", "dark": "dark"}

DAY = 86400.0

Text = Annotated[str, Form(max_length=256)]


@router.get("/account")
def show(request: Request, context: ContextDep, user: CurrentUser, session: CurrentToken) -> Response:
    """The account, with its sessions and tokens."""
    return _page(request, context, user, session)


@router.post("/account/end-others")
def end_others(context: ContextDep, user: CurrentUser, session: CurrentToken) -> Response:
    """End all of the user's other sessions."""
    context.store.accounts.end_browsers(user.name, session.id, context.clock())
    return RedirectResponse("/account", 303)


@router.post("/account/theme")
def set_theme(user: CurrentUser, chosen: Annotated[theme.Theme, Form(alias="theme")]) -> Response:
    """Have this browser's pages light, dark, or as its system says."""
    answer = RedirectResponse("/account", 303)
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
    """Make a token, and show it once; or show the form again with what was wrong."""
    try:
        lasts = float(days) * DAY if days.strip() else None
        ends = None if lasts is None else context.clock() + lasts
        asked = {"name": name.strip(), "expires": ends, "scope": scope}
        new = rest.add(context, user, session, schemas.NewToken.model_validate(asked))
    except ValidationError as error:
        told = problems.invalid(error.errors()).detail
    except ValueError:
        told = f"days: {days!r} is no number"
    else:
        return _page(request, context, user, session, fresh=views.Fresh(user.name, new["token"]))
    return _page(request, context, user, session, error=told, name=name, days=days, scope=scope)


@router.get("/account/tokens/{token_id}/revoke")
def ask(request: Request, context: ContextDep, user: CurrentUser, token_id: str) -> Response:
    """What revoking a token does, and the button for it."""
    found = next((one for one in context.store.accounts.tokens(user.name) if one.id == token_id), None)
    if found is None:
        raise NotFoundError(
            f"you have no token {token_id[:16]!r}", "look at your account for those that you have"
        )
    return templating.page(request, "act.html", view=views.revocation(found))


@router.post("/account/tokens/{token_id}/revoke")
def revoke(context: ContextDep, user: CurrentUser, token_id: str) -> Response:
    """Let a token open nothing any more, nor what was made with it."""
    if not context.store.accounts.revoke(token_id, user.name, context.clock()):
        raise NotFoundError(
            f"you have no token {token_id[:16]!r}", "look at your account for those that you have"
        )
    return RedirectResponse("/account", 303)


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
    tokens, now = context.store.accounts.tokens(user.name), context.clock()
    return templating.page(
        request,
        "account.html",
        status=InvalidError.status if error else 200,
        sessions=views.browsers(tokens, session, now),
        tokens=views.tokens(tokens, now),
        themes=THEMES,
        fresh=fresh,
        error=error,
        name=name,
        days=days,
        scope=scope,
        scopes=views.MAY,
    )
