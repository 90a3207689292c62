import errno
import io
import os
import tempfile
from random import randbytes as random_bytes
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from edt_launch.service import submission
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


def test_what_is_wrong_with_a_request_is_named(world: World) -> None:
    def detail(answer: Any) -> str:
        return str(checked(answer, 422)["detail"])

    code = {"code": ("code.tar", b"")}
    assert detail(world.ann.post("/jobs", files=code)) == "spec: is missing"
    assert detail(world.ann.post("/jobs", files=code, data={"spec": "{"})).startswith("spec: Invalid JSON")
    text = world.ann.post("/jobs", data={"spec": '{"command": ["x"]}', "code": "text"}, files={"other": b""})
    assert detail(text) == "code: expected a file: a part of the form that has a file name"
    assert detail(post_job(world.ann, min=0)).startswith("min: ")
    assert detail(post_job(world.ann, min=2, max=1)) == "max: 1 is less than min, 2"
    job = world.submit(world.ann)["id"]
    json = {"Content-Type": "application/json"}
    assert detail(world.ann.patch(f"/jobs/{job}", content=b"{", headers=json)).startswith(
        "the body is no JSON: "
    )
    assert detail(world.ann.patch(f"/jobs/{job}")) == "body: is missing"
    assert detail(world.ann.patch(f"/jobs/{job}", json={"max": "x"})).startswith("max: ")
    assert detail(world.ann.get("/jobs?limit=0")).startswith("limit: ")


def test_a_value_that_is_refused_is_named_with_its_limit(world: World) -> None:
    job = world.submit(world.ann)["id"]
    problem = checked(world.ann.patch(f"/jobs/{job}", json={"weight": 0}), 422)
    assert problem["detail"] == "weight: 0: expected greater than or equal to 0.001"
    long = checked(world.ann.patch(f"/jobs/{job}", json={"weight": "x" * 1000}), 422)
    assert len(long["detail"]) < 200


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


class FullDisk(io.BytesIO):
    """A file on a disk that has no room left."""

    def write(self, _: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_told_while_the_code_comes(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        tempfile, "TemporaryFile", lambda *_, **__: FullDisk()
    )  # what a large body is kept in
    random = random_bytes(2**21)
    assert "disk is full" in checked(post_job(world.ann, code=random), 503)["detail"]


@pytest.mark.parametrize(
    "number, said",
    [
        (errno.EDQUOT, "disk is full"),
        (errno.EROFS, "disk is read-only"),
        (errno.EIO, "disk has failed"),
    ],
)
def test_what_is_the_matter_with_the_disk_is_told_while_the_code_is_unpacked(
    world: World, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    def fail(*_: object) -> None:
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
