"""The cookie by which a new token is shown once, after a redirection: a reload makes no other one."""

from dataclasses import dataclass

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from edt_launch.service.accounts import sessions
from edt_launch.service.web.templating import is_fragment

LASTS = 60
"""Seconds for which the browser keeps what has not been shown."""


@dataclass(frozen=True)
class Fresh:
    """A new token, which is shown this once, and whose it is."""

    user: str
    token: str


def redirect_with(request: Request, address: str, fresh: Fresh) -> Response:
    """Send the browser to a page, and the token along, in a cookie that only this page gets."""
    answer = RedirectResponse(address, 303)
    answer.set_cookie(
        _cookie(request),
        f"{fresh.user}:{fresh.token}",
        max_age=LASTS,
        path=address,
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


def token_of(request: Request) -> Fresh | None:
    """What a page is to show; None for most."""
    if is_fragment(request):
        return None
    user, separator, token = request.cookies.get(_cookie(request), "").partition(":")
    return Fresh(user, token) if separator else None


def clear(request: Request, answer: Response) -> Response:
    """The answer that shows it, after which the browser has it no more."""
    answer.delete_cookie(_cookie(request), path=request.url.path)
    return answer


def _cookie(request: Request) -> str:
    return f"{sessions.cookie_name(request.app.state.context.url)}_fresh"
