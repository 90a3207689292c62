"""What every request passes first: who asks, how much may be sent, and how long answering took.

It stands before everything else, so that nobody without a token has a byte of a body parsed or kept.
"""

import time
from typing import Any

from prometheus_client import CollectorRegistry, Histogram
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edt_launch.service import tokens
from edt_launch.service.api import problems
from edt_launch.service.api.context import USER, Context
from edt_launch.service.database.engine import AWAY
from edt_launch.service.errors import InvalidError, ServiceError, TooLargeError, UnauthorizedError

OPEN = frozenset({"/healthz"})
"""Paths that anybody may read."""

SUBMIT = ("POST", "/api/v1/jobs")
"""The one request with a large body."""

FORM = 2**20
"""Bytes of a submission besides the archive."""

_SAFE = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]


class Gate:
    """An ASGI application around another one.

    Args:
        app: the one inside.
        context: the service's parts.
        registry: where the time that answers take is told.
    """

    def __init__(self, app: ASGIApp, context: Context, registry: CollectorRegistry) -> None:
        self._app = app
        self._context = context
        self._seconds = Histogram(
            "edt_http_request_seconds",
            "Time until an answer begins.",
            ["method", "route", "status"],
            registry=registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()

        async def observed(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *_SAFE]
                route = getattr(scope.get("route"), "path", "none")
                labels = (_known(scope["method"]), route, str(message["status"]))
                self._seconds.labels(*labels).observe(time.perf_counter() - begin)
            await send(message)

        body = _Body(receive, self._limit(scope))
        try:
            body.check(Headers(scope=scope))
            await self._identify(scope)
        except ServiceError as error:
            await body.drain()
            await problems.of(error)(scope, receive, observed)
            return
        await self._pass(scope, body, observed)

    async def _pass(self, scope: Scope, body: "_Body", send: Send) -> None:
        started = False

        async def unless_too_large(message: Message) -> None:
            nonlocal started
            if body.is_too_large and not started:
                return  # what the application makes of half a body
            started = True
            await send(message)

        try:
            await self._app(scope, body.receive, unless_too_large)
        except TooLargeError:
            if started:
                raise
        if body.is_too_large and not started:
            await body.drain()
            await problems.of(body.error())(scope, body.receive, send)

    def _limit(self, scope: Scope) -> int:
        settings = self._context.settings
        is_submission = (scope["method"], scope["path"].rstrip("/")) == SUBMIT
        return settings.max_upload + FORM if is_submission else settings.max_body

    async def _identify(self, scope: Scope) -> None:
        path = scope["path"]
        if path in OPEN or (path == "/metrics" and self._context.settings.public_metrics):
            return
        kind, _, token = Headers(scope=scope).get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not token:
            raise UnauthorizedError(
                "no token was given",
                "send `Authorization: Bearer TOKEN`; on the service's machine see its token file",
            )
        context = self._context
        try:
            user = await run_in_threadpool(
                tokens.bearer, context.store.accounts, token.strip(), context.clock()
            )
        except AWAY as error:
            raise problems.no_database(error) from None
        if user is None:
            raise UnauthorizedError(
                "the token is unknown, expired or revoked", "ask for another one: `edt tokens add`"
            )
        scope[USER] = user


class _Body:
    """A request's body, counted."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._size = 0
        self._has_more = True
        self.is_too_large = False

    def check(self, headers: Headers) -> None:
        """See what the request says of its length.

        Raises:
            TooLargeError: it is more than the limit.
        """
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise InvalidError("Content-Length is no number")
        self._has_more = length != "0" or "transfer-encoding" in headers
        if int(length[:20]) > self._limit:
            self.is_too_large = True
            raise self.error()

    def error(self) -> TooLargeError:
        return TooLargeError(
            f"the request's body has more than {self._limit:,} bytes",
            "leave out what the job does not need (.edtignore), or read data from a shared folder",
        )

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self._has_more = message.get("more_body", False)
            if self._size > self._limit:
                self.is_too_large = True
                raise self.error()
        return message

    async def drain(self) -> None:
        """Take in what comes, as much again as is allowed: who is still sending does not read the answer."""
        left = self._limit
        while self._has_more and left > 0:
            message: dict[str, Any] = dict(await self._receive())
            if message["type"] != "http.request":
                return
            left -= len(message.get("body", b""))
            self._has_more = message.get("more_body", False)


def _known(method: str) -> str:
    """A method's name; clients may invent others without end."""
    return method if method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} else "other"
