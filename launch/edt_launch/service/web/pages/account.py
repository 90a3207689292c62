"""Who is logged on, and in which browsers."""

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from edt_launch.service.api.dependencies import ContextDep, CurrentToken, CurrentUser
from edt_launch.service.web import templating
from edt_launch.service.web.views.account import browsers

router = APIRouter()


@router.get("/account")
def show(request: Request, context: ContextDep, user: CurrentUser, session: CurrentToken) -> Response:
    """The account, with its sessions."""
    tokens = context.store.accounts.tokens(user.name)
    sessions = browsers(tokens, session, context.clock())
    return templating.page(request, "account.html", sessions=sessions)


@router.post("/account/end-others")
def end_others(context: ContextDep, user: CurrentUser, session: CurrentToken) -> Response:
    """End all of the user's other sessions."""
    context.store.accounts.end_browsers(user.name, session.id, context.clock())
    return RedirectResponse("/account", 303)
