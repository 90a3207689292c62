"""Who is logged on: their browsers and tokens, and how this browser shows pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel

from edt_launch.service.accounts import service
from edt_launch.service.accounts.pages.logon import own_path
from edt_launch.service.accounts.pages.new_token_cookie import Fresh, clear, redirect_with, token_of
from edt_launch.service.accounts.records import TokenRecord, UserRecord
from edt_launch.service.accounts.schemas import NewToken
from edt_launch.service.app.context import Context
from edt_launch.service.errors import InvalidError, NotFoundError
from edt_launch.service.http.dependencies import ContextDep, CurrentToken, CurrentUser
from edt_launch.service.web import templating, theme, wording
from edt_launch.service.web.actions import Action, Asked, routes
from edt_launch.service.web.asking import Question
from edt_launch.service.web.form_fields import Text, parsed

router = APIRouter()

THEMES = {"auto": "as the system says", "light": "light", "dark": "dark"}

SCOPES = {"all": "Full access", "read": "Read only"}
"""What tokens of a scope may do, in words."""

DAY = 86400.0

MAX_DAYS = 36_500
"""Days after which a token ends at the latest, if it does by itself."""


class TokenFields(BaseModel):
    """Of a token to be made, which ends after so many `days`; empty: never by itself."""

    name: Text = ""
    days: Text = ""
    scope: Text = "all"


@dataclass(frozen=True)
class AccountView:
    """The account; `names` are those of all tokens, by their ids, and `fresh` has just been made."""

    session: TokenRecord
    sessions: Sequence[TokenRecord]
    tokens: Sequence[TokenRecord]
    names: Mapping[str, str]
    fresh: Fresh | None = None
    given: TokenFields = field(default_factory=TokenFields)
    error: str = ""
    themes: ClassVar[Mapping[str, str]] = THEMES
    scopes: ClassVar[Mapping[str, str]] = SCOPES


def _view(context: Context, user: UserRecord, session: TokenRecord, **more: Any) -> AccountView:
    known, now = context.store.accounts.tokens(user.name), context.clock()
    newest = sorted((one for one in known if one.opens(now)), key=lambda one: one.created, reverse=True)
    return AccountView(
        session,
        [one for one in newest if one.is_browser],
        [one for one in newest if not one.is_browser],
        {one.id: one.name or one.id for one in known},
        **more,
    )


@router.get("/account")
def show(request: Request, context: ContextDep, user: CurrentUser, session: CurrentToken) -> Response:
    """The account, with its sessions and tokens, and a token that has just been made."""
    fresh = token_of(request)
    view = _view(context, user, session, fresh=fresh)
    answer = templating.page(request, "account.html", view=view)
    return clear(request, answer) if fresh else answer


@router.post("/account/theme")
def set_theme(
    user: CurrentUser,
    chosen: Annotated[theme.Theme, Form(alias="theme")],
    back: Annotated[str, Form(max_length=256)] = "/account",
) -> Response:
    """Have this browser's pages light, dark, or as its system says."""
    answer = RedirectResponse(own_path(back), 303)
    theme.remember(answer, chosen)
    return answer


def _ask_for_token(asked: Asked) -> AccountView:
    return _view(asked.context, asked.user, asked.session, given=asked.given)


def _add_token(asked: Asked) -> Response:
    """Make a token, which the account shows once."""
    name, scope = asked.given.name.strip(), asked.given.scope
    expires = _ends(asked.given.days, asked.context.clock())
    new = parsed(NewToken, {"name": name, "expires": expires, "scope": scope})
    asked.note(f"{name} ({scope})")
    made = service.add_token(asked.context, asked.user, asked.session, new)
    return redirect_with(asked.request, "/account", Fresh(asked.user.name, made["token"]))


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


def _ask_to_revoke(asked: Asked) -> Question:
    """About a token, or the session of a browser."""
    tokens = asked.context.store.accounts.tokens(asked.user.name)
    token = next((one for one in tokens if one.id == asked.id), None)
    if token is None:
        raise _no_token(asked.id)
    if token.is_browser:
        began = f"the browser that logged on at {wording.moment(token.created)}"
        return Question("Log off", began, ["It can log on again."], "/account")
    effect = (
        "Programs that use it are refused from then on, as are tokens and browsers that were let in with it."
    )
    command = f"edt tokens revoke {token.id}"
    return Question("Revoke", token.name or token.id, [effect], "/account", command=command)


def _revoke(asked: Asked) -> str:
    """Let a token open nothing any more, nor what was made with it."""
    if not asked.context.store.accounts.revoke(asked.id, asked.user.name, asked.context.clock()):
        raise _no_token(asked.id)
    return "/account"


def _no_token(id_: str) -> NotFoundError:
    return NotFoundError(f"you have no token {id_[:16]!r}", "look at your account for those that you have")


def _ask_to_end_others(asked: Asked) -> Question:
    return Question("Log off", "all your other browsers", ["They can log on again."], "/account")


def _end_others(asked: Asked) -> str:
    """End all of the user's other sessions."""
    asked.context.store.accounts.end_browsers(asked.user.name, asked.session.id, asked.context.clock())
    return "/account"


router.include_router(
    routes(
        [
            Action(
                "/account/tokens",
                _ask_for_token,
                _add_token,
                TokenFields,
                template="account.html",
                is_on_page=True,
            ),
            Action("/account/tokens/{id}/revoke", _ask_to_revoke, _revoke),
            Action("/account/end-others", _ask_to_end_others, _end_others),
        ]
    )
)
