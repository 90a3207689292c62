"""By what a request says who asks: a name and a password, or a token."""

import base64
import binascii
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers

COOKIE = "edt_session"
"""Set by logging on in the manner of 1.2.x; its value is a token."""


@dataclass(frozen=True)
class Password:
    """A name and what is to prove it: a password, or a token."""

    name: str
    password: str


@dataclass(frozen=True)
class Token:
    """A token; `is_cookie` when a session's cookie has it."""

    token: str
    is_cookie: bool = False


def of(headers: Headers) -> Password | Token | None:
    """What a request says who asks; None if it says nothing that can be understood."""
    if (header := headers.get("authorization")) is not None:
        kind, _, value = header.partition(" ")
        match kind.lower():
            case "basic":
                return _basic(value.strip())
            case "bearer" if value.strip():
                return Token(value.strip())
        return None
    if token := headers.get("x-auth-token", "").strip():
        return Token(token)
    return cookie(headers.get("cookie", ""))


def _basic(value: str) -> Password | None:
    try:
        content = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # as requests encodes what it is given as text
    name, is_pair, password = text.partition(":")
    return Password(name, password) if is_pair else None


def cookie(header: str) -> Token | None:
    """The session that a request's `Cookie` names, if it names one."""
    try:
        found = SimpleCookie(header).get(COOKIE)
    except CookieError:
        return None
    return None if found is None or not found.value else Token(found.value, is_cookie=True)
