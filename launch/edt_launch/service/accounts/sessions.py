"""Sessions of browsers: a cookie with an opaque token, of which the service keeps a hash alone.

A session ends twelve hours after it was last used, and seven days after it has begun in any case. One
that was begun with a token ends with that token, and any when the password is changed.
"""

from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from edt_launch.service.accounts import tokens
from edt_launch.service.accounts.records import TokenRecord, UserRecord
from edt_launch.service.accounts.store import Accounts
from edt_launch.service.errors import UnauthorizedError

IDLE = 12 * 3600.0
"""Seconds after which a session ends that is not used."""

LASTS = 7 * 86400.0
"""Seconds after which it ends in any case."""

LINK_LASTS = 300.0
"""Seconds for which a link logs on."""


def cookie_name(url: str) -> str:
    """Name of the cookie of a service at `url`: browsers do not tell the ports of one host apart."""
    return f"edt_{urlsplit(url).port or 'session'}"


def token_of(headers: Headers, url: str) -> str | None:
    """The token in a request's cookie; None without one."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(cookie_name(url))
    except CookieError:
        return None
    return found.value or None if found else None


def begin(
    accounts: Accounts,
    user: str,
    now: float,
    parent: TokenRecord | None = None,
    password_hash: str | None = None,
) -> str:
    """Begin a session; returns what its cookie is to contain.

    `parent` is the token, or `password_hash` that of the password, that the user has logged on with; raises
    `UnauthorizedError` if it is not valid any more, and `ForbiddenError` if the token is for reading only.
    """
    if parent is not None:
        tokens.check_scope(parent, "POST")
    accounts.forget_sessions(user, now)
    token, _ = tokens.issue(
        accounts,
        user,
        "browser",
        now,
        now + LASTS,
        is_session=True,
        parent=parent,
        password_hash=password_hash,
        idle_until=now + IDLE,
    )
    return token


def resume(accounts: Accounts, token: str, now: float) -> tuple[UserRecord, TokenRecord] | None:
    """Whose session it is, and what is kept of it, having noted that it is used; None if it is over."""
    bearer = accounts.bearer(tokens.hash_of(token), now)
    if bearer is None or bearer[1].idle_until is None:
        return None
    if tokens.is_use_noted_anew(bearer[1], now):
        accounts.note_use(bearer[1].id, now, now + IDLE)
    return bearer


def origin(accounts: Accounts, shown: TokenRecord) -> TokenRecord | None:
    """What a token is made with that a user asks for; it outlives the session that they use.

    That is the token itself that was shown; of a session, the token that it was begun with, and None if that
    was a password.
    """
    if shown.idle_until is None:
        return shown
    return next((token for token in accounts.tokens(shown.user) if token.id == shown.parent), None)


def begin_with_link(accounts: Accounts, secret: str, now: float) -> str:
    """Begin the session that a link is for; like `begin`. The link is used up."""
    used = accounts.take_once(tokens.hash_of(secret), now)
    parent = (
        next((token for token in accounts.tokens(used.user) if token.id == used.parent), None)
        if used
        else None
    )
    if used is None or parent is None:
        raise UnauthorizedError("the link has been used, or has expired", "make another one: edt ui")
    return begin(accounts, used.user, now, parent=parent)


def link(accounts: Accounts, shown: TokenRecord, now: float) -> dict[str, Any]:
    """Where whoever has shown a token can log on once: `path`, below the service's address, and `expires`."""
    token, record = tokens.issue(
        accounts, shown.user, "link", now, now + LINK_LASTS, parent=shown, is_once=True
    )
    return {"path": f"/logon?once={token}", "expires": record.expires}
