import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from edt_launch.service.accounts.authenticator import FORM, BearerAuthenticator
from edt_launch.service.app.system import registry_of
from edt_launch.service.http.dependencies import USER
from edt_launch.service.http.listening import Connections
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
            size += len(message["body"])
            has_more = message["more_body"]
        self.bodies.append(size)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})


class Passing:
    """A gate, and what came out of it."""

    def __init__(self, world: World, **waits: float) -> None:
        self.inside = Inside()
        authenticator, seconds = BearerAuthenticator(world.context), histogram(registry_of(world.context))
        self.gate = RequestMiddleware(self.inside, authenticator, seconds, **{"stall": 0.01, **waits})
        self.token = world.tokens["ann"]
        self.received: Callable[[], object] = lambda: None
        """Called before a block of a body is received."""

    def ask(
        self,
        path: str = "/api/v1/jobs",
        *blocks: bytes,
        method: str = "GET",
        stalls: bool = False,
        connections: Connections | None = None,
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
        sent: list[Message] = []

        async def receive() -> Message:
            if stalls:
                await asyncio.Event().wait()
            await asyncio.sleep(0)
            self.received()
            return next(rest)

        async def send(message: Message) -> None:
            sent.append(message)

        if connections is None:
            asyncio.run(self.gate(scope, receive, send))
        else:
            peer = ("127.0.0.1", 1)
            connections.admit(peer, lambda: None)
            asyncio.run(connections.noted(self.gate)({**scope, "client": peer}, receive, send))
        return sent[0]


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


class Streaming:
    """An application whose answer ends when nobody takes it any more."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        self.is_open.set()
        await asyncio.Event().wait()


async def answer_of(world: World, withdraw: Callable[[World], object]) -> list[Message]:
    """What a stream sends whose token is withdrawn once it is open."""
    inside, sent = Streaming(), []
    authenticator, seconds = BearerAuthenticator(world.context), histogram(registry_of(world.context))
    gate = RequestMiddleware(inside, authenticator, seconds, recheck=0.0)
    token = f"Bearer {world.tokens['ann']}".encode()
    scope = {"type": "http", "method": "GET", "path": "/x", "headers": [(b"authorization", token)]}

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    serving = asyncio.create_task(gate(scope, receive, send))
    await inside.is_open.wait()
    withdraw(world)
    await serving
    return sent


def revoke(world: World) -> None:
    world.store.accounts.revoke(world.store.accounts.tokens("ann")[0].id, None, world.clock())


def remove(world: World) -> None:
    world.store.accounts.remove_user("ann")


@pytest.mark.parametrize("withdraw", [revoke, remove])
def test_a_stream_ends_with_what_has_opened_it(world: World, withdraw: Callable[[World], None]) -> None:
    start, first, last = asyncio.run(answer_of(world, withdraw))
    assert start["status"] == 200
    assert (first["body"], first["more_body"]) == (b"first", True)
    assert (last["body"], last.get("more_body", False)) == (b"", False)
