"""What the account page shows."""

from collections.abc import Iterable
from dataclasses import dataclass

from edt_launch.service.database.records import TokenRecord
from edt_launch.service.sessions import IDLE


@dataclass(frozen=True)
class Session:
    """A browser that is logged on; `used` is right to a minute."""

    began: float
    used: float
    ends: float
    is_this: bool


def browsers(tokens: Iterable[TokenRecord], this: TokenRecord, now: float) -> list[Session]:
    """Those of a user's tokens that are sessions of browsers, the newest first."""
    found = [
        Session(
            token.created, token.idle_until - IDLE, token.expires or token.idle_until, token.id == this.id
        )
        for token in tokens
        if token.idle_until is not None and token.idle_until > now
    ]
    return sorted(found, key=lambda session: session.began, reverse=True)
