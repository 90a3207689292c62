"""Authentication at WMLA's interfaces: Basic, tokens and session cookies; errors as plain text."""

import base64
import binascii
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie

import structlog
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from edt_launch.service.accounts import tokens
from edt_launch.service.accounts.authenticator import FORM
from edt_launch.service.accounts.passwords import Verifier
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.app.fair_threads import FairThreads
from edt_launch.service.db.engine import AWAY
from edt_launch.service.errors import ServiceError, TooLargeError, UnauthorizedError
from edt_launch.service.http import problems
from edt_launch.service.http.dependencies import USER
from edt_launch.service.names import USER as USER_NAME

log = structlog.get_logger()

CONDUCTOR = "/platform/rest/conductor/v1"
"""Where Spectrum Conductor's interface is, of 1.2.x."""

DEEP_LEARNING = "/platform/rest/deeplearning/v1"
"""Where Deep Learning Impact's is, of both generations."""

AUTH = "/auth/v1"
"""Where one logs on to 2.x."""

UPLOADS = frozenset({f"{DEEP_LEARNING}/execs", f"{DEEP_LEARNING}/hypersearch"})

AT_ONCE = 2
"""Passwords that are verified at a time: each takes 64 MB, and other requests are not to wait for them."""

WAITING = 100
"""Requests for one user from one address that may wait for that."""

SMALLER = "send what the script needs alone, and have it read data from DATA_DIR"
"""What to do about a body that is too large; `.edtignore` means nothing to these clients."""

STYLE, PROOF = "edt_wmla_style", "edt_wmla_proof"
"""Where in a request's scope its style is, and the `Password` or `Token` that it was let in by."""


CHALLENGE = {"WWW-Authenticate": 'Basic realm="EDT"'}


class NotOfferedError(ServiceError):
    """What WMLA can and EDT cannot."""

    status = 501
    title = "not offered"


def response(
    status: int, title: str, detail: str, next_step: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """An error's response; WMLA says 400 to whatever makes no sense."""
    code = HTTPStatus.BAD_REQUEST if status == HTTPStatus.UNPROCESSABLE_ENTITY else status
    # Advice that begins so is about another interface.
    advice = f"; {next_step}" if next_step and not next_step.startswith("GET ") else ""
    line = " ".join(f"{detail}{advice}".split()).rstrip(".")
    return Response(
        f"Error {int(code)}: {line}.\n", status_code=code, media_type="text/plain", headers=headers
    )


def refusal(error: ServiceError) -> Response:
    """The response of one of our own errors."""
    headers = CHALLENGE if error.status == HTTPStatus.UNAUTHORIZED else None
    return response(error.status, error.title, error.detail, error.next_step, headers)


class Style(Enum):
    """In whose manner a request is to be answered."""

    CLASSIC = "1.2.x"
    MODERN = "2.x"


COOKIE = "edt_session"
"""Set by logging on in the manner of 1.2.x; its value is a token."""


@dataclass(frozen=True)
class Password:
    """A name and what is to prove it: a password, or a token."""

    name: str
    password: str
    stored: str | None = field(default=None, repr=False)
    """The hash against which the password was verified; None for a token."""


@dataclass(frozen=True)
class Token:
    """A token; `is_cookie` when a session's cookie has it."""

    token: str
    is_cookie: bool = False


def proof_of(headers: Headers) -> Password | Token | None:
    """What proves who asks; None if a request says nothing that can be understood."""
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


class WmlaAuthenticator:
    """Implements `service.accounts.authenticator.Authenticator`."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._verifier = Verifier()
        self._slowly = FairThreads(AT_ONCE, WAITING)

    @property
    def withdrawals(self) -> int:
        """Grows with revoked tokens, sessions that end, changed passwords and removed users."""
        return self._context.store.accounts.withdrawals

    def limit(self, scope: Scope) -> int:  # noqa: D102
        settings = self._context.settings
        is_upload = scope["method"] == "POST" and scope["path"] in UPLOADS
        return settings.max_upload + FORM if is_upload else settings.max_body

    async def identify(self, scope: Scope) -> None:
        """Put who asks into the scope, in which manner, and what proves it."""
        proof = proof_of(Headers(scope=scope))
        if proof is None:
            raise UnauthorizedError(
                "no user name and password, and no token, was given", "send an Authorization header"
            )
        try:
            if isinstance(proof, Token):
                user = await self._owner(proof.token, scope["method"])
            else:
                proof = replace(proof, stored=await self._stored(proof.name))
                address = (scope.get("client") or ("",))[0]
                user = await self._named(proof, address, scope["method"])
                if user is None:
                    log.warning("a logon has failed", user=proof.name[:64], address=address)
        except AWAY as error:
            raise problems.no_database(error) from None
        if user is None:
            is_token, wrong = isinstance(proof, Token), "the user name or the password is wrong"
            raise UnauthorizedError("unknown or expired token" if is_token else wrong, "log on again")
        scope[USER], scope[PROOF] = user, proof
        is_modern = isinstance(proof, Token) and not proof.is_cookie
        scope[STYLE] = Style.MODERN if is_modern else Style.CLASSIC

    def refusal(self, error: ServiceError) -> Response:  # noqa: D102
        return refusal(TooLargeError(error.detail, SMALLER) if isinstance(error, TooLargeError) else error)

    async def _owner(self, token: str, method: str) -> UserRecord | None:
        accounts, now = self._context.store.accounts, self._context.clock()
        bearer = await run_in_threadpool(tokens.bearer, accounts, token, now)
        if bearer is None:
            return None
        tokens.check_scope(bearer[1], method)
        return bearer[0]

    async def _named(self, proof: Password, address: str, method: str) -> UserRecord | None:
        if proof.password.startswith(tokens.PREFIX):
            user = await self._owner(proof.password, method)
            return user if user is not None and user.name == proof.name else None
        arguments = (proof.name, proof.password, proof.stored, time.monotonic())
        if not self._verifier.remembers(*arguments):
            # All names that nobody has are one: guessing among them holds up nobody.
            who = address, None if proof.stored is None else proof.name
            if not await self._slowly.run(who, partial(self._verifier.verify, *arguments)):
                return None
        return await run_in_threadpool(self._context.store.accounts.user, proof.name)

    async def _stored(self, name: str) -> str | None:
        if not re.fullmatch(USER_NAME, name):
            return None
        return await run_in_threadpool(self._context.store.accounts.password, name)
