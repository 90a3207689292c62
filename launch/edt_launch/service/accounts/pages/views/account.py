"""What the account page shows."""

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from edt_launch.service.accounts.records import TokenRecord
from edt_launch.service.web import wording
from edt_launch.service.web.asking import Field, Question

MAY = {"all": "Full access", "read": "Read only"}
"""What tokens of a scope may do, in words."""


@dataclass(frozen=True)
class Session:
    """A browser that is logged on; `used` is right to a minute."""

    id: str
    began: float
    used: float
    ends: float
    is_this: bool


@dataclass(frozen=True)
class Token:
    """A token; `expires` is None if it does not end by itself, `used` if it never was. It may `may`."""

    id: str
    name: str
    made: float
    expires: float | None
    made_with: str
    used: float | None
    may: str


@dataclass(frozen=True)
class Fresh:
    """A new token, which is shown this once, and whose it is."""

    user: str
    token: str


def browsers(tokens: Iterable[TokenRecord], this: TokenRecord, now: float) -> list[Session]:
    """Those of a user's tokens that are sessions of browsers, the newest first."""
    found = [
        Session(
            token.id,
            token.created,
            token.used or token.created,
            token.expires or token.idle_until,
            token.id == this.id,
        )
        for token in tokens
        if token.idle_until is not None and token.idle_until > now
    ]
    return sorted(found, key=lambda session: session.began, reverse=True)


def tokens(found: Iterable[TokenRecord], now: float) -> list[Token]:
    """The others that open something, the newest first."""
    names = {token.id: token.name or token.id for token in found}
    shown = [
        Token(
            token.id,
            token.name,
            token.created,
            token.expires,
            names.get(token.parent or "", ""),
            token.used,
            MAY[token.scope],
        )
        for token in found
        if token.idle_until is None and not token.is_once and (token.expires is None or token.expires > now)
    ]
    return sorted(shown, key=lambda token: token.made, reverse=True)


def password_question(name: str, error: str = "", *, is_own: bool = False) -> Question:
    """The form for one's own password, or for somebody else's; `error`: what was wrong with it."""
    sessions = "All browsers that are logged on as you are" if is_own else "Browsers that they use are"
    fields = [
        Field(
            "secret",
            "Your password now, or a token of yours that does not end",
            "",
            False,
            (),
            "current-password",
        ),
        Field("password", "New password", "", False, (), "new-password"),
    ]
    address = "/account/password" if is_own else f"/users/{quote(name)}/password"
    effect = f"{sessions} logged off by that."
    back = "/account" if is_own else "/users"
    return Question("Set the password of", name, [effect], address, back, fields, error=error, button="Set")


def revocation(token: TokenRecord) -> Question:
    """The question about revoking a token, or ending a session."""
    address = f"/account/tokens/{token.id}/revoke"
    if token.idle_until is not None:
        began = f"the browser that logged on at {wording.moment(token.created)}"
        return Question("Log off", began, ["It can log on again."], address, "/account")
    effect = (
        "Programs that use it are refused from then on, as are tokens and browsers that were let in with it."
    )
    command = f"edt tokens revoke {token.id}"
    return Question("Revoke", token.name or token.id, [effect], address, "/account", command=command)
