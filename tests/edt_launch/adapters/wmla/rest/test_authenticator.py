import asyncio
import base64
import threading
from collections import Counter
from typing import ClassVar

import pytest
import structlog
from sqlalchemy.exc import OperationalError
from starlette.datastructures import Headers
from starlette.types import Scope

from asking import PASSWORD, Asking
from edt_launch.adapters.wmla.rest import authenticator
from edt_launch.adapters.wmla.rest.authenticator import (
    Password,
    Token,
    WmlaAuthenticator,
    proof_of,
)
from edt_launch.service.accounts import passwords
from edt_launch.service.accounts.passwords import Verifier
from edt_launch.service.errors import (
    UnauthorizedError,
    UnavailableError,
)
from world import World


class Counting(Verifier):
    """Counts how often something was verified the slow way."""

    count = 0

    def verify(self, name: str, password: str, stored: str | None, now: float) -> bool:
        type(self).count += 1
        return super().verify(name, password, stored, now)


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch, world: World) -> Asking:
    monkeypatch.setattr(authenticator, "Verifier", Counting)
    Counting.count = 0
    return Asking(World(world.settings.home, world.store))


def status(asking: Asking, name: str, password: str) -> int:
    with asking.client() as client:
        return client.get("/conf", auth=(name, password)).status_code


def test_a_password_is_verified_once_in_a_while_until_it_is_changed(counting: Asking) -> None:
    assert [status(counting, "ann", PASSWORD) for _ in range(3)] == [200] * 3
    assert Counting.count == 1
    counting.world.store.accounts.set_password("ann", passwords.hash_of("another one"), 0.0)
    assert status(counting, "ann", PASSWORD) == 401
    assert status(counting, "ann", "another one") == 200


@pytest.mark.parametrize(
    "name, password",
    [("ann", "wrong"), ("nobody", PASSWORD), ("an\0n", PASSWORD)],
)
def test_guessing_takes_as_long_whether_there_is_such_a_user_or_not(
    counting: Asking, name: str, password: str
) -> None:
    assert status(counting, name, password) == 401
    assert Counting.count == 1


def test_a_token_is_as_good_as_a_password(counting: Asking) -> None:
    token = counting.world.tokens["ann"]
    assert status(counting, "ann", token) == 200
    assert status(counting, "bob", token) == 401
    accounts = counting.world.store.accounts
    for record in accounts.tokens("ann"):
        accounts.revoke(record.id, "ann", 0.0)
    assert status(counting, "ann", token) == 401
    assert Counting.count == 0


class Blocking(Verifier):
    """Verifies nothing for ann before it is let go, and notes what it is asked."""

    go_on: ClassVar = threading.Event()
    asked: ClassVar[list[str]] = []

    def verify(self, name: str, password: str, stored: str | None, now: float) -> bool:
        self.asked.append(name)
        if name == "ann":
            self.go_on.wait()
        return name == "bob"


@pytest.mark.parametrize("way", ["token", "password"])
def test_a_token_for_reading_starts_and_stops_nothing(world: World, way: str) -> None:
    token = world.ann.post("/tokens", json={"scope": "read"}).json()["token"]
    auth = {"auth": ("ann", token)} if way == "password" else {"headers": {"X-Auth-Token": token}}
    with Asking(world).client() as client:
        assert client.get("/execs", **auth).status_code == 200
        answer = client.post("/execs", **auth)
        assert answer.status_code == 403
        assert "for reading only" in answer.text


def scope(name: str, password: str) -> Scope:
    header = basic(f"{name}:{password}".encode()).encode()
    return {
        "type": "http",
        "method": "GET",
        "headers": [(b"authorization", header)],
        "client": ("10.0.0.9", 1),
    }


def test_who_guesses_keeps_nobody_else_out(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authenticator, "Verifier", Blocking)
    monkeypatch.setattr(authenticator, "WAITING", 3)
    Blocking.go_on.clear()
    Blocking.asked.clear()
    for name in ("ann", "bob"):
        world.store.accounts.set_password(name, passwords.hash_of(PASSWORD), 0.0)
    guesses = ["ann"] * 6 + [f"nobody{number}" for number in range(3)]

    async def attack() -> list[object]:
        one = WmlaAuthenticator(world.context)
        asked = [asyncio.create_task(one.identify(scope(name, "a guess"))) for name in guesses]
        while len(Blocking.asked) < 1:
            await asyncio.sleep(0)
        try:
            await one.identify(scope("bob", PASSWORD))
        finally:
            Blocking.go_on.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    kinds = Counter(type(error) for error in asyncio.run(attack()))
    assert kinds == {UnauthorizedError: 7, UnavailableError: 2}


def test_a_logon_that_fails_is_logged_without_its_password(asking: Asking) -> None:
    with structlog.testing.capture_logs() as logs:
        assert status(asking, "ann", "s3cret guess") == 401
        assert status(asking, "no\nbody", "s3cret guess") == 401
    assert [(line["event"], line["user"], line["address"]) for line in logs] == [
        ("a logon has failed", "ann", "testclient"),
        ("a logon has failed", "no\nbody", "testclient"),
    ]
    assert "s3cret" not in str(logs)


def basic(text: bytes) -> str:
    return f"Basic {base64.b64encode(text).decode()}"


@pytest.mark.parametrize(
    "headers, expected",
    [
        ({"authorization": basic(b"ann:a:b c"), "x-auth-token": "other"}, Password("ann", "a:b c")),
        ({"authorization": basic("ann:wörd".encode("latin-1"))}, Password("ann", "wörd")),
        ({"authorization": basic(b"ann")}, None),
        ({"authorization": "Basic not/base64!"}, None),
        ({"authorization": "Bearer  edt_x ", "x-auth-token": "other"}, Token("edt_x")),
        ({"x-auth-token": "edt_x", "cookie": "edt_session=edt_y"}, Token("edt_x")),
        ({"cookie": "a=b; edt_session=edt_y"}, Token("edt_y", is_cookie=True)),
        *(({"cookie": cookie}, None) for cookie in ("edt_session=", "\x01=;;;")),
        ({}, None),
    ],
)
def test_proofs(headers: dict[str, str], expected: object) -> None:
    assert proof_of(Headers(headers)) == expected


def test_every_error_below_the_bases_is_one(asking: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    client = asking.modern()
    client = asking.client(headers=dict(client.headers), raise_server_exceptions=False)

    def broken(error: Exception) -> None:
        def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(asking.world.store.hosts, "all", fail)
        monkeypatch.setattr(asking.world.store.shares, "all", fail)

    broken(RuntimeError("mistake"))
    answers = [client.get("/nowhere"), client.put("/execs"), client.get("/resplans/resplantree")]
    broken(OperationalError("SELECT", {}, Exception("gone")))
    answers.append(client.get("/resplans/resplantree"))
    assert [answer.status_code for answer in answers] == [404, 405, 500, 503]
    for answer in answers:
        assert answer.headers["content-type"].startswith("text/plain")
        assert answer.text.startswith(f"Error {answer.status_code}: ")
        assert answer.text.count("\n") == 1
    outside = asking.client("").get("/nowhere", headers=dict(client.headers))
    assert outside.headers["content-type"] == "application/problem+json"
