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
    for path in ("/jobs?submitted_since", "/timeline?until", "/allocations?since"):
        assert world.ann.get(f"{path}=253402300799").status_code == 200
        checked(world.ann.get(f"{path}=253402300800"), 422)
    for time, status in ((253402300799, 201), (253402300800, 422)):
        assert post_job(world.ann, begin=time).status_code == status


def test_a_value_that_is_refused_is_named_with_its_limit(world: World) -> None:
    job = world.submit(world.ann)["id"]
    problem = checked(world.ann.patch(f"/jobs/{job}", json={"weight": 0}), 422)
    assert problem["detail"] == "weight: 0: expected 0.001 or more"
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
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(submission, "unpack", fail)
    assert "disk is full" in checked(post_job(world.ann), 503)["detail"]
    assert list(world.settings.paths.incoming.iterdir()) == []


def test_a_mistake_of_ours_tells_nothing_of_our_insides(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("s3cret")

    monkeypatch.setattr(world.store.jobs, "page", fail)
    world.ann._transport.raise_server_exceptions = False  # type: ignore[attr-defined]
    assert "s3cret" not in str(checked(world.ann.get("/jobs"), 500))
