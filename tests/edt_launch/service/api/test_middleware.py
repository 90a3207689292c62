import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError
from starlette.types import Message, Receive, Scope, Send

from edt_launch.service.api import middleware
from edt_launch.service.api.authenticator import FORM, BearerAuthenticator
from edt_launch.service.api.dependencies import USER
from edt_launch.service.api.middleware import RequestMiddleware, histogram
from edt_launch.service.api.system import registry_of
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
        sent: list[Message] = []

        async def receive() -> Message:
            if stalls:
                await asyncio.Event().wait()
            await asyncio.sleep(0)
            return next(rest)

        async def send(message: Message) -> None:
            sent.append(message)

        asyncio.run(self.gate(scope, receive, send))
        return sent[0]


@pytest.fixture
def passing(world: World) -> Passing:
    return Passing(world)


def test_who_asks_is_known_inside(passing: Passing) -> None:
    answer = passing.ask()
    assert answer["status"] == 200
    assert passing.inside.scopes[0][USER].name == "ann"
    assert (b"x-content-type-options", b"nosniff") in answer["headers"]
    assert (b"cache-control", b"no-store") in answer["headers"]


@pytest.mark.parametrize("header", ["", "Bearer", "Bearer ", "Basic YW5uOg==", "Bearer nonsense"])
def test_strangers_stay_outside(passing: Passing, header: str) -> None:
    assert passing.ask(authorization=header)["status"] == 401
    assert passing.inside.scopes == []


def test_health_is_open_to_strangers(passing: Passing) -> None:
    assert passing.ask("/healthz", authorization="")["status"] == 200
    assert passing.ask("/metrics", authorization="")["status"] == 401


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
    for path in ("/api/v1/jobs", "/api/v1/experiments"):
        assert passing.ask(path, block, block, method="POST", **chunked)["status"] == 200
        assert passing.ask(path, large, method="POST", **chunked)["status"] == 413
    stop = "/api/v1/experiments/x/stop"
    assert passing.ask(stop, block, block, method="POST", **chunked)["status"] == 413
    assert passing.inside.bodies == [600, 1200, 1200]


def test_what_is_refused_is_taken_in_as_far_as_it_was_announced(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(middleware, "SLOWEST", 1)  # it may take as long as it likes
    passing = Passing(World(world.settings.home, world.store, max_body=1000), patience=0.0)
    blocks = [b"x" * 600] * 20
    answer = passing.ask("/api/v1/shares/lab", *blocks, method="PUT", content_length="12000")
    assert answer["status"] == 413
    assert (b"connection", b"close") not in answer["headers"]
    endless = passing.ask("/api/v1/shares/lab", *blocks, method="PUT", transfer_encoding="chunked")
    assert endless["status"] == 413
    assert (b"connection", b"close") in endless["headers"]
    monkeypatch.setattr(middleware, "LONGEST", 0.0)
    trickling = passing.ask("/api/v1/shares/lab", *blocks, method="PUT", content_length="12000")
    assert trickling["status"] == 413
    assert (b"connection", b"close") in trickling["headers"]


def test_while_the_database_does_not_answer_nobody_is_let_in(
    world: World, passing: Passing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    monkeypatch.setattr(world.store.accounts, "bearer", fail)
    assert passing.ask()["status"] == 503
    assert passing.inside.scopes == []


def test_who_is_refused_and_does_not_go_on_sending_is_not_waited_for(passing: Passing) -> None:
    for headers in ({"authorization": "", "content_length": "3"}, {"content_length": str(2**40)}):
        answer = passing.ask(method="POST", stalls=True, **headers)
        assert answer["status"] in (401, 413)
        assert (b"connection", b"close") in answer["headers"]
    assert (b"connection", b"close") not in passing.ask(authorization="")["headers"]
