from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

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


@pytest.mark.parametrize("job", ["x", "..%2f..%2fetc", "%00", "jaaaaaaaa%0a", "a" * 5000, "%ff"])
def test_what_is_no_id_is_no_job(world: World, job: str) -> None:
    checked(world.ann.get(f"/jobs/{job}"), 404)


def test_bodies_have_limits(world: World) -> None:
    small = World(world.settings.home, world.store, max_body=1000, max_upload=1000)
    problem = checked(small.admin.post("/users", content=b"x" * 2000), 413)
    assert "1,000 bytes" in problem["detail"]
    checked(small.admin.post("/users", content=iter([b"x" * 600] * 4)), 413)
    checked(post_job(small.ann, code=b"x" * (2**20 + 2000)), 413)
    assert post_job(small.ann).status_code == 201


def test_without_a_token_no_body_is_looked_at(world: World) -> None:
    checked(world.anybody.post("/api/v1/jobs", content=iter([b"x" * 1000] * 10)), 401)


def test_code_has_limits_when_unpacked(world: World) -> None:
    from world import tar

    small = World(world.settings.home, world.store, max_unpacked=1000, max_files=3)
    checked(post_job(small.ann, code=tar({"zeros": bytes(2000)})), 413)
    checked(post_job(small.ann, code=tar({f"{n}": b"" for n in range(4)})), 413)


def test_a_database_that_does_not_answer_is_told(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OperationalError("SELECT", {}, Exception("gone"))

    monkeypatch.setattr(world.store.jobs, "page", fail)
    assert "gone" not in str(checked(world.ann.get("/jobs"), 503))


def test_a_mistake_of_ours_tells_nothing_of_our_insides(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise KeyError("s3cret")

    monkeypatch.setattr(world.store.jobs, "page", fail)
    world.ann._transport.raise_server_exceptions = False  # type: ignore[attr-defined]
    assert "s3cret" not in str(checked(world.ann.get("/jobs"), 500))
