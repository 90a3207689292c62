import errno
import os
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from edt_launch.service.jobs import submission
from world import World, post_job

FIELDS = {"type", "title", "status", "detail", "next"}


def checked(answer: Any, status: int) -> dict[str, Any]:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = answer.json()
    assert problem.keys() == FIELDS
    assert problem["status"] == status
    assert problem["detail"]
    return problem


def test_every_error_is_a_problem(world: World) -> None:
    checked(world.ann.get("/nothing"), 404)
    checked(world.ann.get("/jobs/jaaaaaaaa"), 404)
    assert checked(world.ann.put("/jobs"), 405)
    checked(world.ann.get("/jobs?limit=0"), 422)
    checked(world.admin.post("/users", content=b"{"), 422)
    checked(world.ann.get("/jobs?owner=%00"), 422)
    checked(world.anybody.get("/api/v1/"), 401)


def test_a_time_after_the_last_date_is_refused(world: World) -> None:
    job = world.submit(world.ann)["id"]
    asked = (
        f"/jobs/{job}/logs/search?until",
        "/jobs?submitted_since",
        "/timeline?until",
        "/allocations?since",
    )
    for path in asked:
        assert world.ann.get(f"{path}=253402300799").status_code == 200
        checked(world.ann.get(f"{path}=253402300800"), 422)
    for time, status in ((253402300799, 201), (253402300800, 422)):
        assert world.ann.post("/tokens", json={"expires": time}).status_code == status
        assert post_job(world.ann, begin=time).status_code == status


def test_a_value_that_is_refused_is_named_with_its_limit(world: World) -> None:
    job = world.submit(world.ann)["id"]
    problem = checked(world.ann.patch(f"/jobs/{job}", json={"weight": 0}), 422)
    assert problem["detail"] == "weight: 0: expected 0.001 or more"
    tagged = checked(world.ann.patch(f"/jobs/{job}", json={"tags": ["lr test"]}), 422)
    tag = "a tag: letters, digits and any of _ . -, 64 characters at most, and no . or - first"
    assert tagged["detail"] == f"tags.0: 'lr test': expected {tag}"
    long = checked(world.ann.patch(f"/jobs/{job}", json={"weight": "x" * 1000}), 422)
    assert len(long["detail"]) < 200


def test_a_value_that_may_be_secret_is_not_named(world: World) -> None:
    problem = checked(post_job(world.ann, environment={"A": "s3cret\0"}), 422)
    assert problem["detail"].startswith("environment.A: ")
    assert "s3cret" not in problem["detail"]


def test_a_database_that_does_not_answer_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    monkeypatch.setattr(world.store.jobs, "page", fail)
    assert "gone" not in str(checked(world.ann.get("/jobs"), 503))


def test_what_is_the_matter_with_the_disk_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number, said in (
        (errno.ENOSPC, "disk is full"),
        (errno.EROFS, "disk is read-only"),
        (errno.EIO, "disk has failed"),
    ):

        def fail(*_: object, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(submission, "unpack", fail)
        assert said in checked(post_job(world.ann), 503)["detail"]
        assert list(world.settings.paths.incoming.iterdir()) == []


def test_a_mistake_of_ours_tells_nothing_of_our_insides(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("s3cret")

    monkeypatch.setattr(world.store.jobs, "page", fail)
    world.ann._transport.raise_server_exceptions = False  # type: ignore[attr-defined]
    assert "s3cret" not in str(checked(world.ann.get("/jobs"), 500))
