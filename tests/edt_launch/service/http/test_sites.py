"""Which names and which pages requests may come by."""

from pathlib import Path

from starlette.testclient import TestClient

from edt_launch.service.db.store import Store
from world import World


def status(world: World, **headers: str) -> int:
    return world.ann.get("/jobs", headers=headers).status_code


def test_requests_come_by_the_services_own_names_and_addresses(world: World) -> None:
    for host in ("edt.test", "EDT.test:8766", "localhost:1", "127.0.0.1", "[::1]:8766", "10.1.2.3:80"):
        assert status(world, host=host) == 200, host
    for host in ("evil.example", "edt.test.evil.example", "localhost.evil.example:8766", "[", "a b"):
        answer = world.ann.get("/jobs", headers={"host": host})
        assert answer.status_code == 403, host
        assert answer.headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
        assert "allowed_hosts" in answer.json()["next"]


def test_pages_of_the_service_may_use_it(world: World) -> None:
    assert status(world, host="localhost:8766", origin="http://localhost:8766") == 200
    assert status(world, host="edt.test", origin="https://EDT.test") == 200


def test_pages_of_others_may_not(world: World) -> None:
    origins = ("http://evil.example", "null", "", "http://localhost:3000", "http://edt.test:81", "http://[")
    for origin in origins:
        answer = world.ann.post("/jobs", headers={"origin": origin, "host": "edt.test"}, data={"spec": "{}"})
        assert answer.status_code == 403, origin
        assert "may not use this service" in answer.json()["detail"]


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
