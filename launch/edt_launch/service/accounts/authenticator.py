"""How requests to one part of the interface are let in, and told that they are not."""

import re
from collections.abc import Callable
from typing import Protocol

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from edt_launch.service.accounts import sessions, tokens
from edt_launch.service.accounts.records import TokenRecord, UserRecord
from edt_launch.service.accounts.store import Accounts
from edt_launch.service.app.context import Context
from edt_launch.service.app.home import DEFINITION_ID
from edt_launch.service.db.engine import AWAY
from edt_launch.service.errors import ServiceError, UnauthorizedError
from edt_launch.service.http import problems
from edt_launch.service.http.dependencies import TOKEN, USER

FORM = 2**20
"""Bytes of a submission besides the archive."""


class Authenticator(Protocol):
    """What the middleware asks about a request."""

    @property
    def withdrawals(self) -> int:
        """Grows whenever what has opened the service may open it no more."""

    def limit(self, scope: Scope) -> int:
        """Bytes that its body may have."""

    async def identify(self, scope: Scope) -> None:
        """Put who asks into the scope, as `context.USER`; `ServiceError` if nobody knows who it is."""

    def refusal(self, error: ServiceError) -> Response:
        """How it is told what is wrong."""


Find = Callable[[Accounts, str, float], tuple[UserRecord, TokenRecord] | None]
"""Tells whose token it is at a time, and what is kept of it."""


async def is_identified(context: Context, scope: Scope, find: Find, token: str) -> bool:
    """Put whose token it is, and the token, into the scope; False if it opens nothing.

    Raises:
        ForbiddenError: the token is for reading, and the request is not.
        UnavailableError: the database does not answer.
    """
    try:
        bearer = await run_in_threadpool(find, context.store.accounts, token, context.clock())
    except AWAY as error:
        raise problems.no_database(error) from None
    if bearer is not None:
        tokens.check_scope(bearer[1], scope["method"])
        scope[USER], scope[TOKEN] = bearer
    return bearer is not None


class BearerAuthenticator:
    """Authentication at `/api/v1`: `Authorization: Bearer TOKEN`, errors as problems.

    What is only read is also opened by the session of a browser.
    """

    OPEN = frozenset({"/healthz"})
    """Paths that anybody may read."""

    UPLOADS = re.compile(rf"/api/v1/(jobs|searches|definitions(/{DEFINITION_ID}/code)?)/*")
    """The paths that archives are posted to."""

    DATA = "/api/v1/datasets/"
    """What the paths that data is put to begin with."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @property
    def withdrawals(self) -> int:
        """Grows with revoked tokens and removed users."""
        return self._context.store.accounts.withdrawals

    def limit(self, scope: Scope) -> int:
        """Bytes that its body may have."""
        settings = self._context.settings
        if scope["method"] == "PUT" and scope["path"].startswith(self.DATA):
            return settings.max_data
        is_upload = scope["method"] == "POST" and self.UPLOADS.fullmatch(scope["path"]) is not None
        return settings.max_upload + FORM if is_upload else settings.max_body

    async def identify(self, scope: Scope) -> None:
        """Put who asks, and the token, into the scope.

        Raises:
            ForbiddenError, UnauthorizedError: the token does not open this, or anything.
            UnavailableError: the database does not answer.
        """
        path = scope["path"]
        if path in self.OPEN or (path == "/metrics" and self._context.settings.public_metrics):
            return
        token = self._token(scope)
        if token is None:
            raise UnauthorizedError(
                "no token was given",
                "send `Authorization: Bearer TOKEN`; on the service's machine see its token file",
            )
        if not await is_identified(self._context, scope, tokens.bearer, token):
            raise UnauthorizedError("unknown or expired token", "ask for another one: `edt tokens add`")

    def _token(self, scope: Scope) -> str | None:
        """The one that was sent; pages read with the cookie of their session, and change nothing here."""
        headers = Headers(scope=scope)
        if "authorization" in headers or scope["method"] != "GET":
            kind, _, token = headers.get("authorization", "").partition(" ")
            return (token.strip() or None) if kind.lower() == "bearer" else None
        return sessions.token_of(headers, self._context.url)

    def refusal(self, error: ServiceError) -> Response:
        """A problem."""
        return problems.of(error)
