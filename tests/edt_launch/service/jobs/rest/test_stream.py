import asyncio
import json

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.bus import Topic
from edt_launch.service.jobs.rest.stream import JobListCache, _changes, difference
from world import World

ANN, BOB = UserRecord("ann"), UserRecord("bob")


def data(message: bytes | None) -> dict[str, list[object]]:
    assert message is not None
    (line,) = [line for line in message.decode().splitlines() if line.startswith("data: ")]
    found: dict[str, list[object]] = json.loads(line.removeprefix("data: "))
    return found


def test_only_what_has_changed_is_told(world: World) -> None:
    job_list_cache = JobListCache(world.store, world.bus, world.clock)
    ids = [world.submit(world.ann, environment={"SECRET": "s3cret"})["id"] for _ in range(2)]
    first = job_list_cache.latest()
    assert [job["id"] for job in data(difference(None, first, ANN))["jobs"]] == ids  # type: ignore[index]
    assert b"s3cret" in (difference(None, first, ANN) or b"")
    assert b"s3cret" not in (difference(None, first, UserRecord("bob")) or b"")
    assert job_list_cache.latest() is first
    world.store.jobs.record({ids[1]: {"step": 7}})
    world.bus.notify(Topic.JOBS)
    second = job_list_cache.latest()
    (changed,) = data(difference(first, second, ANN))["jobs"]
    assert changed["step"] == 7  # type: ignore[index]
    assert difference(second, second, ANN) is None


def test_the_stream_begins_with_all_jobs_and_ends_with_the_service(world: World) -> None:
    job = world.submit(world.ann)["id"]

    async def watch() -> tuple[bytes, bytes, list[bytes]]:
        stream = _changes(world.context, ANN, JobListCache(world.store, world.bus, world.clock))
        assert (await anext(stream)).startswith(b"retry:")
        first = await anext(stream)
        world.ann.post(f"/jobs/{job}/stop")
        second = await anext(stream)
        world.context.stop.set()
        return first, second, [message async for message in stream]

    first, second, rest = asyncio.run(watch())
    assert [one["wanted"] for message in (first, second) for one in data(message)["jobs"]] == [  # type: ignore[index]
        "run",
        "stop",
    ]
    assert rest == []
    world.context.stop.set()
    assert world.ann.get("/stream").headers["content-type"].startswith("text/event-stream")
