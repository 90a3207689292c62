"""Which names and which pages requests may come by."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from edt_launch.service.database.store import Store
from world import World


def status(world: World, **headers: str) -> int:
    return world.ann.get("/jobs", headers=headers).status_code


@pytest.mark.parametrize(
    "host", ["edt.test", "EDT.test:8766", "localhost:1", "127.0.0.1", "[::1]:8766", "10.1.2.3:80"]
)
def test_the_services_own_names_and_addresses_are_answered(world: World, host: str) -> None:
    assert status(world, host=host) == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "edt.test.evil.example", "localhost.evil.example:8766", "[", "a b"]
)
def test_other_names_are_refused(world: World, host: str) -> None:
    answer = world.ann.get("/jobs", headers={"host": host})
    assert answer.status_code == 403
    assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert "is no name of this service" in answer.json()["detail"]
    assert "allowed_hosts" in answer.json()["next"]


def test_pages_of_the_service_may_use_it(world: World) -> None:
    assert status(world, host="localhost:8766", origin="http://localhost:8766") == 200
    assert status(world, host="edt.test", origin="https://EDT.test") == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://localhost:3000", "http://edt.test:81", "http://["]
)
def test_pages_of_others_may_not(world: World, origin: str) -> None:
    before = world.store.jobs.page().jobs
    answer = world.ann.post("/jobs", headers={"origin": origin, "host": "edt.test"}, data={"spec": "{}"})
    assert answer.status_code == 403
    assert "may not use this service" in answer.json()["detail"]
    assert world.store.jobs.page().jobs == before


def test_wmlas_interfaces_are_closed_to_them_too(world: World) -> None:
    client = TestClient(world.app, base_url="http://edt.test")
    path = "/platform/rest/deeplearning/v1/execs"
    assert client.post(path, headers={"origin": "http://evil.example"}).status_code == 403
    assert client.get(path, headers={"host": "evil.example"}).status_code == 403


def test_names_can_be_added(tmp_path: Path, store: Store) -> None:
    world = World(tmp_path / "home", store, allowed_hosts="edt.example, *", public_url="https://jobs.example")
    assert status(world, host="whatever.example") == 200
    assert status(world, host="inner:8766", origin="https://jobs.example") == 200
    assert status(world, host="inner:8766", origin="https://edt.example") == 200
    assert status(world, host="inner:8766", origin="https://whatever.example") == 403
