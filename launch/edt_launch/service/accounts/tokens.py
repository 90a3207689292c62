"""Opaque tokens: 256 random bits, of which the service keeps a hash alone.

A hash without salt or cost is enough: nobody guesses what has so many random bits.
"""

import hashlib
import secrets

from edt_launch.service.accounts.records import TokenRecord, UserRecord
from edt_launch.service.accounts.store import Accounts
from edt_launch.service.errors import ForbiddenError, UnauthorizedError

PREFIX = "edt_"
"""Tells scanners for leaked secrets what it is."""

READ = "read"
"""Scope of a token that changes nothing."""

NOTED = 60.0
"""Seconds after which it is written down again that a token is used."""


def hash_of(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()


def issue(
    accounts: Accounts,
    user: str,
    name: str,
    now: float,
    expires: float | None = None,
    is_session: bool = False,
    parent: TokenRecord | None = None,
    password_hash: str | None = None,
    idle_until: float | None = None,
    is_once: bool = False,
    scope: str = "all",
) -> tuple[str, TokenRecord]:
    """Give a user a token: returns it, to be told once, and what is kept of it.

    Args:
        accounts: where its hash is kept.
        user: whose.
        name: what for.
        now: unix time.
        expires: unix time from which it opens nothing; None for never.
        is_session: whether it was given for logging on, and ends with the user's password.
        parent: the token that it is made with; the new one ends no later, and is revoked with it. If it has
            just been revoked, `UnauthorizedError` is raised.
        password_hash: of the password that it is given for; if the user has another one by now,
            `UnauthorizedError` is raised.
        idle_until: unix time from which it opens nothing unless it is used before; None for no such end.
        is_once: whether it logs a browser on, once, and opens nothing else.
        scope: "all", or "read" for a token that changes nothing.
    """
    token = PREFIX + secrets.token_urlsafe(32)
    ends = [end for end in (expires, parent.expires if parent else None) if end is not None]
    record = TokenRecord(
        id=secrets.token_hex(4),
        hash=hash_of(token),
        user=user,
        name=name,
        created=now,
        expires=min(ends, default=None),
        is_session=is_session,
        parent=parent.id if parent else None,
        idle_until=idle_until,
        is_once=is_once,
        scope=scope,
    )
    if not accounts.add_token(record, password_hash):
        given = "token that this one is made with was revoked" if parent else "password was changed"
        raise UnauthorizedError(f"the {given}", "use another one")
    return token, record


def bearer(accounts: Accounts, token: str, now: float) -> tuple[UserRecord, TokenRecord] | None:
    """Whose token it is, and what is kept of it; None if it opens nothing (any more). Its use is noted."""
    found = accounts.bearer(hash_of(token), now)
    if found is not None and is_use_noted_anew(found[1], now):
        accounts.note_use(found[1].id, now, found[1].idle_until)
    return found


def is_use_noted_anew(token: TokenRecord, now: float) -> bool:
    """Whether it was last noted long enough ago that the token is used."""
    return token.used is None or now - token.used >= NOTED


def check_scope(token: TokenRecord, method: str) -> None:
    """Refuse a request that may change something to a token that is for reading.

    Raises:
        ForbiddenError: the token is, and the method is neither GET nor HEAD.
    """
    if token.scope == READ and method not in ("GET", "HEAD"):
        raise ForbiddenError(
            f"the token {token.name or token.id} is for reading only",
            "use one that may change things: make it on the page of your account, or by `edt tokens add`",
        )
