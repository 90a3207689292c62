"""What is read from a job's files: logs, events, metrics, results, checkpoints."""

import asyncio
import io
import json
import operator
import tarfile
import threading
import zipfile
from typing import Any

import anyio.to_thread
import httpx2
import pytest
from starlette.testclient import TestClient

from edt_launch.service.files.rest import files
from edt_launch.service.files.rest import schemas as output_schemas
from edt_launch.service.jobs.states import State
from world import World

EVENTS: list[dict[str, Any]] = [
    {"event": "world", "time": 1.0, "size": 1},
    {"event": "progress", "time": 2.0, "step": 10, "size": 1, "values": {"loss": 0.5}},
    {"event": "progress", "time": 3.0, "step": 20, "size": 1, "values": {"loss": float("nan")}},
]


@pytest.fixture
def job(world: World) -> str:
    """An ended job with files."""
    made: str = world.submit(world.ann)["id"]
    files = world.files(made)
    files.launcher_log.write_text("[0] hello\n[1] wörld\n")
    files.output.events.write_text("".join(json.dumps(event) + "\n" for event in EVENTS) + '{"event": "ha')
    (files.train / "weights.pt").write_bytes(b"w" * 1000)
    for step in (5, 10):
        folder = files.output.checkpoint / f"step-{step:08}"
        folder.mkdir()
        (folder / "state").write_bytes(b"s" * step)
    (files.output.checkpoint / "step-00000015.tmp").mkdir()
    world.go(made, State.STARTING, State.SUCCEEDED)
    return made


def unpacked(data: bytes) -> dict[str, int]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {member.name: member.size for member in archive if member.isfile()}


def test_following_ends_with_the_job(world: World, job: str) -> None:
    assert world.ann.get(f"/jobs/{job}/logs?follow=1").text == "[0] hello\n[1] wörld\n"
    assert world.ann.get(f"/jobs/{job}/events?follow=1", headers=sse()).text.count("data:") == 3


def sse(**headers: str) -> dict[str, str]:
    return {"Accept": "text/event-stream", **headers}


def test_events_are_a_list_without_what_is_no_json(world: World, job: str) -> None:
    found = world.ann.get(f"/jobs/{job}/events").json()
    assert found == [*EVENTS[:2], EVENTS[2] | {"values": {"loss": None}}]
    assert world.ann.get(f"/jobs/{world.submit(world.ann)['id']}/events").json() == []


def test_events_go_on_after_the_last_one_seen(world: World, job: str) -> None:
    lines = world.ann.get(f"/jobs/{job}/events", headers=sse()).text.splitlines()
    ids = [line.removeprefix("id: ") for line in lines if line.startswith("id: ")]
    assert ids[0] == str(len(json.dumps(EVENTS[0])) + 1)
    rest = {"Last-Event-ID": ids[1]}
    assert world.ann.get(f"/jobs/{job}/events", headers=sse(**rest)).text.count("data:") == 1
    assert world.ann.get(f"/jobs/{job}/events?after={ids[0]}").json()[0] == EVENTS[1]
    assert world.ann.get(f"/jobs/{job}/events?after=999999").json() == []


def test_metrics_are_columns(world: World, job: str) -> None:
    course = world.ann.get(f"/jobs/{job}/metrics?name=accuracy").json()
    assert (course["step"], course["loss"], course["training"]) == ([10, 20], [0.5, None], [0.0, 1.0])
    assert course["values"] == {"loss": [0.5, None], "accuracy": [None, None]}
    assert course["about"]["loss"] == {"lowest": 0.5, "highest": 0.5, "last": 0.5, "missing": 1}
    assert course.keys() == output_schemas.Metrics.model_fields.keys()
    output_schemas.Metrics.model_validate(course)


def test_nothing_but_the_files_of_a_job_is_sent(world: World, job: str) -> None:
    model = world.files(job).output.model
    (model / "weights").write_bytes(b"weights")
    (model / "link").symlink_to("/etc/passwd")
    answer = world.ann.get(f"/jobs/{job}/files/model/weights")
    assert answer.content == b"weights"
    assert answer.headers["content-disposition"] == "attachment; filename*=utf-8''weights"
    assert world.bob.get(f"/jobs/{job}/files/model/weights").status_code == 403
    names = ("model", "nothing", "../allocation", "model/../../allocation", "/etc/passwd", "model/link")
    for name in (*names, "model%00"):
        assert world.ann.get(f"/jobs/{job}/files/{name}").status_code in (404, 422), name
    for name in ("work/none", "work/../log", "/etc/passwd", ""):
        assert world.ann.get(f"/jobs/{job}/results", params={"name": name}).status_code == 404, name
    for name in ("step-00000099", "%2e%2e", "..%2f..%2flog", "step-00000015.tmp"):
        assert world.ann.get(f"/jobs/{job}/checkpoints/{name}").status_code == 404, name


def test_results_have_a_limit_which_is_told_before_anything_is_sent(world: World, job: str) -> None:
    with (world.files(job).output.model / "sparse").open("wb") as file:
        file.truncate(2**42)
    answer = world.ann.get(f"/jobs/{job}/results")
    assert answer.status_code == 413
    assert "more than max_result, 68,719,476,736" in answer.json()["detail"]


def test_results_have_what_the_script_wrote_beside_its_code(world: World, job: str) -> None:
    code = world.files(job).code
    (code / "out").mkdir()
    (code / "out" / "best.pt").write_bytes(b"b" * 77)
    listed = {one["name"]: one["size"] for one in world.ann.get(f"/jobs/{job}/files").json()["files"]}
    assert listed == unpacked(world.ann.get(f"/jobs/{job}/results").content)
    assert listed["work/out/best.pt"] == 77
    zipped = world.ann.get(f"/jobs/{job}/results?format=zip&name=work/out")
    assert zipped.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(zipped.content)) as archive:
        assert archive.read("work/out/best.pt") == b"b" * 77
    chosen = world.ann.get(f"/jobs/{job}/results?name=work/out&name=model/")
    assert unpacked(chosen.content) == {"work/out/best.pt": 77, "model/train/weights.pt": 1000}


def test_checkpoints_are_listed_and_fetched(world: World, job: str) -> None:
    found = world.ann.get(f"/jobs/{job}/checkpoints").json()["checkpoints"]
    assert [(one["name"], one["step"], one["size"]) for one in found] == [
        ("step-00000005", 5, 5),
        ("step-00000010", 10, 10),
    ]
    client = TestClient(world.app, headers=world.ann.headers)
    assert unpacked(client.get(found[1]["url"]).content) == {"step-00000010/state": 10}
    assert client.get(f"{found[1]['url']}/check").json() == {"name": "step-00000010", "state": "unknown"}


@pytest.mark.parametrize(
    "path, slow", [("metrics", "_metrics"), ("results", "size_of"), ("checkpoints/step-00000005", "size_of")]
)
def test_others_do_not_wait_while_much_is_read_for_one(
    world: World, job: str, path: str, slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, go_on, begun = operator.attrgetter(slow)(files), threading.Event(), threading.Event()

    def wait(*arguments: Any, **more: Any) -> Any:
        begun.set()
        go_on.wait()
        return read(*arguments, **more)

    monkeypatch.setattr(f"edt_launch.service.files.rest.files.{slow}", wait)

    async def ask() -> list[int]:
        ann, bob = ({"Authorization": f"Bearer {world.tokens[name]}"} for name in ("ann", "bob"))
        anyio.to_thread.current_default_thread_limiter().total_tokens = 4
        transport = httpx2.ASGITransport(app=world.app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://edt.test/api/v1") as client:
            reading = [asyncio.create_task(client.get(f"/jobs/{job}/{path}", headers=ann)) for _ in range(8)]
            try:
                while not begun.is_set():
                    await asyncio.sleep(0)
                for _ in range(3):  # meanwhile all of hers have begun that may
                    await asyncio.wait_for(client.get("/jobs", headers=bob), 30)
            finally:
                go_on.set()
            return [(await answer).status_code for answer in reading]

    assert asyncio.run(ask()) == [200] * 8
