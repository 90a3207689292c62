"""Opaque tokens: 256 random bits, of which the service keeps a hash alone.

A hash without salt or cost is enough: nobody guesses what has so many random bits.
"""

import hashlib
import secrets

from edt_launch.service.database.accounts import Accounts
from edt_launch.service.database.records import TokenRecord, UserRecord

PREFIX = "edt_"
"""Tells scanners for leaked secrets what it is."""


def new_token() -> str:
    """A token that nobody else has."""
    return PREFIX + secrets.token_urlsafe(32)


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
) -> tuple[str, TokenRecord]:
    """Give a user a token.

    Args:
        accounts: where its hash is kept.
        user: whose.
        name: what for.
        now: unix time.
        expires: unix time from which it opens nothing; None for never.
        is_session: whether it was given for a password, and ends with it.

    Returns:
        The token, to be told once, and what is kept of it.
    """
    token = new_token()
    record = TokenRecord(
        secrets.token_hex(4), hash_of(token), user, name, now, expires, is_session=is_session
    )
    accounts.add_token(record)
    return token, record


def bearer(accounts: Accounts, token: str, now: float) -> UserRecord | None:
    """Whose token it is; None if it opens nothing (any more)."""
    return accounts.bearer(hash_of(token), now)
