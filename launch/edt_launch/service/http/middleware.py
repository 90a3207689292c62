"""What every request passes first: who asks, how much may be sent, and how long answering took.

It stands before everything else, so that nobody without a token has a byte of a body parsed or kept.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
from prometheus_client import CollectorRegistry, Histogram
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edt_launch.service.accounts.authenticator import Authenticator
from edt_launch.service.errors import (
    InvalidError,
    ServiceError,
    SlowRequestError,
    TooLargeError,
    UnauthorizedError,
)
from edt_launch.service.http import problems
from edt_launch.service.http.dependencies import USER
from edt_launch.service.http.listening import BUSY, REFUSING

PATIENCE = 60.0
"""Seconds for which a body that may have no end is taken in before a refusal."""

LONGEST = 600.0
"""Seconds after which a body that is refused is taken in no more, however long it says that it is."""

SLOWEST = 2**20
"""Bytes a second that such a body must come at."""

SLOWEST_BODY = 2**14
"""Bytes a second that a body must come at, after its first minute."""

STALL = 5.0
"""Seconds without a byte after which nothing more of a body that is refused is waited for."""

STALLS = 6
"""How much longer the next bytes of any other are waited for."""

RECHECK = 1.0
"""Seconds after which a stream whose token is revoked ends."""

EXPIRY = 30.0
"""Seconds after which a stream whose token expires ends."""

_SAFE = [(name.lower().encode(), value.encode()) for name, value in problems.SAFE.items()]


Note = Callable[[Scope, int], Awaitable[None]]
"""Takes notice of a request and the status of its answer."""


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
        note: is told of each answer's scope and status, before the answer begins.
        recheck: seconds from one look whether who asks may still do so to the next, while the answer lasts.
    """

    def __init__(
        self,
        app: ASGIApp,
        authenticator: Authenticator,
        seconds: Histogram,
        patience: float = PATIENCE,
        stall: float = STALL,
        recheck: float = RECHECK,
        note: Note | None = None,
    ) -> None:
        self._app = app
        self._authenticator = authenticator
        self._seconds = seconds
        self._patience = patience
        self._stall = stall
        self._recheck = recheck
        self._note = note

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin = time.perf_counter()

        async def observed(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                names = {name for name, _ in own}
                message["headers"] = [*own, *(header for header in _SAFE if header[0] not in names)]
                route = getattr(scope.get("route"), "path", "none")
                labels = (_known(scope["method"]), route, str(message["status"]))
                self._seconds.labels(*labels).observe(time.perf_counter() - begin)
                if self._note is not None:
                    await self._note(scope, message["status"])
            await send(message)

        body = _Body(receive, self._authenticator.limit(scope), self._stall)
        with contextlib.ExitStack() as stack:
            try:
                body.check(Headers(scope=scope))
                await self._authenticator.identify(scope)
                if USER in scope and BUSY in scope:
                    stack.enter_context(scope[BUSY](scope[USER].name))
            except ServiceError as error:
                with scope.get(REFUSING, contextlib.nullcontext)():
                    refusal = await self._refusal(error, body)
                    await refusal(scope, receive, observed)
                return
            await self._until_withdrawn(scope, body, observed)

    async def _until_withdrawn(self, scope: Scope, body: "_Body", send: Send) -> None:
        """Serve it, and end the answer once the one who asks may not any more."""
        has_begun = is_open = False

        async def noted(message: Message) -> None:
            nonlocal has_begun, is_open
            has_begun = True
            is_open = message["type"] == "http.response.start" or message.get("more_body", False)
            await send(message)

        with anyio.CancelScope() as answering:
            watch = asyncio.create_task(self._watch(scope, answering))
            try:
                await self._pass(scope, body, noted)
            finally:
                watch.cancel()
        if answering.cancelled_caught and not has_begun:
            error = UnauthorizedError("the token was revoked, or has expired, meanwhile", "use another one")
            await self._authenticator.refusal(error)(scope, body.receive, send)
        elif answering.cancelled_caught and is_open:
            await send({"type": "http.response.body", "body": b""})

    async def _watch(self, scope: Scope, answering: anyio.CancelScope) -> None:
        """Cancel an answer that takes long once what has proved who asks is withdrawn."""
        seen, checked = self._authenticator.withdrawals, anyio.current_time()
        while True:
            await asyncio.sleep(self._recheck)
            if seen == self._authenticator.withdrawals and anyio.current_time() - checked < EXPIRY:
                continue
            seen, checked = self._authenticator.withdrawals, anyio.current_time()
            try:
                await self._authenticator.identify(scope)
            except UnauthorizedError:
                answering.cancel()
                return
            except ServiceError:  # nobody can tell at present
                checked = float("-inf")

    async def _pass(self, scope: Scope, body: "_Body", send: Send) -> None:
        started = False

        async def unless_refused(message: Message) -> None:
            nonlocal started
            if body.error is not None and not started:
                return  # what the application makes of half a body
            started = True
            await send(message)

        try:
            await self._app(scope, body.receive, unless_refused)
        except (TooLargeError, SlowRequestError):
            if started:
                raise
        if body.error is not None and not started:
            refusal = await self._refusal(body.error, body)
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
    def __init__(self, receive: Receive, limit: int, stall: float) -> None:
        self._receive = receive
        self._limit = limit
        self._stall = stall
        self._size = 0
        self._began: float | None = None
        self.length = 0
        self.has_more = True
        self.error: ServiceError | None = None

    def check(self, headers: Headers) -> None:
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise InvalidError("Content-Length is no number")
        self.length = int(length[:20])
        self.has_more = length != "0" or "transfer-encoding" in headers
        if self.length > self._limit:
            raise self._too_large()

    async def receive(self) -> Message:
        if not self.has_more:  # a disconnection is waited for, as long as the answer lasts
            return await self._receive()
        now = anyio.current_time()
        self._began = self._began or now
        left = self._began + PATIENCE + self._size / SLOWEST_BODY - now
        with anyio.move_on_after(min(left, self._stall * STALLS)) as waiting:
            message = await self._receive()
        if waiting.cancelled_caught:
            raise self._too_slow()
        if message["type"] == "http.request":
            self._size += len(message.get("body", b""))
            self.has_more = message.get("more_body", False)
            if self._size > self._limit:
                raise self._too_large()
        return message

    def _too_large(self) -> ServiceError:
        self.error = TooLargeError(
            f"the request's body has more than {self._limit:,} bytes",
            "send less (.edtignore names what to leave out of code), or ask for a higher limit",
        )
        return self.error

    def _too_slow(self) -> ServiceError:
        self.error = SlowRequestError(
            f"{self._size:,} bytes of the request's body have arrived, and the rest does not",
            f"send at least {SLOWEST_BODY:,} bytes a second",
        )
        return self.error

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
