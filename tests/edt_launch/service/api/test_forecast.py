import pytest

from edt_launch.service.api.forecast import forecast
from edt_launch.service.database.records import UserRecord
from edt_launch.service.specification import JobSpec
from edt_launch.service.states import State
from edt_launch.service.submission import Submission
from world import NOW, World


def asked(world: World, **spec: object) -> dict[str, object]:
    new = JobSpec.model_validate({"command": ["true"], **spec})
    return forecast(world.store, world.settings, Submission(UserRecord("bob"), new), NOW)


@pytest.fixture
def running(world: World) -> str:
    """A job of ann's that has all four devices."""
    job: str = world.submit(world.ann, min=1, max=4)["id"]
    world.go(job, State.STARTING, State.RUNNING)
    held = (("node1", ("0", "1", "2", "3")),)
    world.store.jobs.record({job: {"held": held, "size": 4, "target": 4, "running_since": NOW - 1e4}})
    return job


def test_on_an_idle_machine_a_job_gets_its_maximum(world: World) -> None:
    (change,) = asked(world, min=1, max=3)["changes"]  # type: ignore[misc, attr-defined]
    assert (change["job"], change["from"], change["to"]) == (None, 0, 3)


def test_who_would_give_way_is_told(world: World, running: str) -> None:
    answer = asked(world, min=1, max=4)
    changes = {change["job"]: (change["from"], change["to"]) for change in answer["changes"]}  # type: ignore[attr-defined]
    assert changes == {running: (4, 2), None: (0, 2)}
    assert answer["job"]["id"] == ""  # type: ignore[index]
    assert answer["job"]["share"] == 2.0  # type: ignore[index]


def test_what_does_not_fit_would_wait(world: World, running: str) -> None:
    (change,) = asked(world, min=5, max=5)["changes"]  # type: ignore[misc, attr-defined]
    assert (change["job"], change["to"]) == (None, 0)
    assert change["reason"]


def test_paused_jobs_give_nothing(world: World) -> None:
    job = world.submit(world.ann, min=1, max=4)["id"]
    world.ann.post(f"/jobs/{job}/pause")
    changes = asked(world, min=1, max=4)["changes"]
    assert [(change["job"], change["to"]) for change in changes] == [(None, 4)]  # type: ignore[attr-defined]


def test_nothing_is_written_down(world: World, running: str) -> None:
    before = world.store.jobs.live(), world.store.shares.all(), world.store.memory.get("allocator")
    asked(world, min=1, max=4)
    assert (world.store.jobs.live(), world.store.shares.all(), world.store.memory.get("allocator")) == before
