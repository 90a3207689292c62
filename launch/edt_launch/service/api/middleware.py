"""What every request passes first: who asks, how much may be sent, and how long answering took.

It stands before everything else, so that nobody without a token has a byte of a body parsed or kept.
"""

import time
from typing import Any

import anyio
from prometheus_client import CollectorRegistry, Histogram
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edt_launch.service.api.authenticator import Authenticator
from edt_launch.service.errors import InvalidError, ServiceError, TooLargeError

PATIENCE = 60.0
"""Seconds for which a body that may have no end is taken in before a refusal."""

LONGEST = 600.0
"""Seconds after which a body that is refused is taken in no more, however long it says that it is."""

SLOWEST = 2**20
"""Bytes a second that such a body must come at."""

STALL = 5.0
"""Seconds without a byte after which nothing more of any body is waited for."""

_SAFE = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]


def histogram(registry: CollectorRegistry) -> Histogram:
    """How long answers took, by method, route and status."""
    return Histogram(
        "edt_http_request_seconds",
        "Time until an answer begins.",
        ["method", "route", "status"],
        registry=registry,
    )


class RequestMiddleware:
    """An ASGI application around another one.

    Args:
        app: the one inside.
        authenticator: says who may pass it.
        seconds: made by `histogram`; observes the time that answers take.
        patience: seconds for which a body that is refused is taken in; more if it says that it is long.
        stall: seconds that the next bytes of any are waited for.
    """

    def __init__(
        self,
        app: ASGIApp,
        authenticator: Authenticator,
        seconds: Histogram,
        patience: float = PATIENCE,
        stall: float = STALL,
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._seconds = seconds
        self._patience = patience
        self._stall = stall

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

        body = _Body(receive, self._authenticator.limit(scope))
        try:
            body.check(Headers(scope=scope))
            await self._authenticator.identify(scope)
        except ServiceError as error:
            refusal = await self._refusal(error, body)
            await refusal(scope, receive, observed)
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
            refusal = await self._refusal(body.error(), body)
            await refusal(scope, body.receive, send)

    async def _refusal(self, error: ServiceError, body: "_Body") -> Response:
        """Who is still sending does not read an answer, and with TLS loses it: all is taken in first."""
        response = self._authenticator.refusal(error)
        with anyio.move_on_after(min(self._patience + body.length / SLOWEST, LONGEST)):
            await body.drain(self._stall)
        if body.has_more:
            response.headers["Connection"] = "close"
        return response


class _Body:
    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive = receive
        self._limit = limit
        self._size = 0
        self.length = 0
        self.has_more = True
        self.is_too_large = False

    def check(self, headers: Headers) -> None:
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise InvalidError("Content-Length is no number")
        self.length = int(length[:20])
        self.has_more = length != "0" or "transfer-encoding" in headers
        if self.length > self._limit:
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
            self.has_more = message.get("more_body", False)
            if self._size > self._limit:
                self.is_too_large = True
                raise self.error()
        return message

    async def drain(self, stall: float) -> None:
        while self.has_more:
            message: dict[str, Any] = {"type": "nothing"}
            with anyio.move_on_after(stall):
                message = dict(await self._receive())
            if message["type"] != "http.request":
                return
            self.has_more = message.get("more_body", False)


def _known(method: str) -> str:
    """A method's name; clients may invent others without end."""
    return method if method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"} else "other"
