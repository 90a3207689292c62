import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from edt_launch.service.accounts.authenticator import FORM, BearerAuthenticator
from edt_launch.service.app.system import registry_of
from edt_launch.service.http.dependencies import USER
from edt_launch.service.http.middleware import RequestMiddleware, histogram
from world import World


class Inside:
    """An application that reads whole bodies, and keeps what it was asked."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = []
        self.bodies: list[int] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scopes.append(scope)
        size, has_more = 0, True
        while has_more:
            message = await receive()
            size, has_more = size + len(message["body"]), message["more_body"]
        self.bodies.append(size)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Passing:
    """A gate, and what came out of it."""

    def __init__(self, world: World, application: ASGIApp | None = None, **waits: float) -> None:
        self.inside, self.sent = Inside(), []
        authenticator, seconds = BearerAuthenticator(world.context), histogram(registry_of(world.context))
        inside = application or self.inside
        self.gate = RequestMiddleware(inside, authenticator, seconds, **{"stall": 0.01, **waits})
        self.token = world.tokens["ann"]

    def ask(
        self,
        path: str = "/api/v1/jobs",
        *blocks: bytes,
        method: str = "GET",
        stalls: bool = False,
        **headers: str,
    ) -> Message:
        """The start of the answer."""
        told = {"authorization": f"Bearer {self.token}", **headers}
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "headers": [(name.replace("_", "-").encode(), text.encode()) for name, text in told.items()],
        }
        rest: Iterator[dict[str, Any]] = iter(
            [{"type": "http.request", "body": block, "more_body": True} for block in blocks]
            + [{"type": "http.request", "body": b"", "more_body": False}]
        )
        self.sent: list[Message] = []

        async def receive() -> Message:
            if stalls:
                await asyncio.Event().wait()
            await asyncio.sleep(0)
            return next(rest)

        async def send(message: Message) -> None:
            self.sent.append(message)

        asyncio.run(self.gate(scope, receive, send))
        return self.sent[0]


@pytest.fixture
def passing(world: World) -> Passing:
    return Passing(world)


def test_who_asks_is_known_inside(passing: Passing) -> None:
    answer = passing.ask()
    assert answer["status"] == 200
    assert passing.inside.scopes[0][USER].name == "ann"
    assert (b"x-content-type-options", b"nosniff") in answer["headers"]
    assert (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'") in answer["headers"]
    assert (b"cache-control", b"no-store") in answer["headers"]


def test_a_body_that_says_it_is_too_large_is_not_read(world: World, passing: Passing) -> None:
    length = str(world.settings.max_body + 1)
    assert passing.ask(method="PATCH", content_length=length)["status"] == 413
    assert passing.ask(method="PATCH", content_length="many")["status"] == 422
    assert passing.inside.bodies == []


def test_a_body_that_turns_out_too_large_is_refused(world: World) -> None:
    passing = Passing(World(world.settings.home, world.store, max_body=1000, max_upload=3000))
    block = b"x" * 600
    chunked = {"transfer_encoding": "chunked"}
    assert passing.ask("/api/v1/shares/lab", block, method="PUT", **chunked)["status"] == 200
    assert passing.ask("/api/v1/shares/lab", block, block, method="PUT", **chunked)["status"] == 413
    large = b"x" * (FORM + 3001)
    for path in ("/api/v1/jobs", "/api/v1/searches"):
        assert passing.ask(path, block, block, method="POST", **chunked)["status"] == 200
        assert passing.ask(path, large, method="POST", **chunked)["status"] == 413
    stop = "/api/v1/searches/x/stop"
    assert passing.ask(stop, block, block, method="POST", **chunked)["status"] == 413
    assert passing.inside.bodies == [600, 1200, 1200]


def test_who_is_refused_and_does_not_go_on_sending_is_not_waited_for(passing: Passing) -> None:
    for headers in ({"authorization": "", "content_length": "3"}, {"content_length": str(2**40)}):
        answer = passing.ask(method="POST", stalls=True, **headers)
        assert answer["status"] in (401, 413)
        assert (b"connection", b"close") in answer["headers"]
    assert (b"connection", b"close") not in passing.ask(authorization="")["headers"]


def test_a_body_that_does_not_arrive_is_refused(world: World) -> None:
    passing = Passing(world, stall=0.0)
    assert passing.ask(method="POST", content_length="5", stalls=True)["status"] == 408
    assert passing.inside.bodies == []


def answer_of(world: World, withdraw: Callable[[World], object]) -> list[Message]:
    """What a stream sends whose token is withdrawn once it is open, and which would not end by itself."""

    async def streaming(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        withdraw(world)
        await asyncio.Event().wait()

    passing = Passing(world, streaming, recheck=0.0)
    passing.ask("/x")
    return passing.sent


def revoke(world: World) -> None:
    world.store.accounts.revoke(world.store.accounts.tokens("ann")[0].id, None, world.clock())


def remove(world: World) -> None:
    world.store.accounts.remove_user("ann")


@pytest.mark.parametrize("withdraw", [revoke, remove])
def test_a_stream_ends_with_what_has_opened_it(world: World, withdraw: Callable[[World], None]) -> None:
    start, first, last = answer_of(world, withdraw)
    assert start["status"] == 200
    assert (first["body"], first["more_body"]) == (b"first", True)
    assert (last["body"], last.get("more_body", False)) == (b"", False)
