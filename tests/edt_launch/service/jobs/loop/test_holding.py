"""What holds a queued job back, besides devices."""

from dataclasses import replace

import pytest

from edt_launch.service.jobs.loop.holding import Hold, hold
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State, Wanted
from simulated_pool import World, submit
from test_step import FOUR

RECORD = JobRecord("j9", "ann", ("x",), 1, 1, 100.0, after=("j1", "j2"))
LATER = "this job was to run after its success"


@pytest.mark.parametrize(
    "states, held",
    [
        ({"j1": State.RUNNING}, Hold("waits for the success of j1, j2", ("j1", "j2"))),
        ({"j1": State.SUCCEEDED}, Hold("waits for the success of j2", ("j2",))),
        ({"j1": State.SUCCEEDED, "j2": State.SUCCEEDED}, Hold()),
        ({"j1": State.FAILED}, Hold(f"j1 has failed: {LATER}", ("j1", "j2"), is_final=True)),
        ({"j2": State.STOPPED}, Hold(f"j2 has stopped: {LATER}", ("j1", "j2"), is_final=True)),
        ({"j1": None}, Hold(f"j1 was deleted: {LATER}", ("j1", "j2"), is_final=True)),
    ],
)  # fmt: skip
def test_a_job_waits_for_the_success_of_others(states: dict[str, State | None], held: Hold) -> None:
    assert hold(100.0, RECORD, states) == held


def test_a_job_waits_for_its_time() -> None:
    record = replace(RECORD, after=(), begin=1e9)
    assert hold(1e9 - 1, record, {}).reason == "begins at 2001-09-09 01:46:40 UTC"
    assert hold(1e9, record, {}) == Hold()
    assert hold(0.0, replace(record, wanted=Wanted.STOP), {}) == Hold()
    assert hold(0.0, replace(record, state=State.RUNNING), {}) == Hold()


def test_what_succeeds_meanwhile_counts_for_a_paused_job() -> None:
    paused = replace(RECORD, state=State.PAUSED, wanted=Wanted.PAUSE)
    assert hold(100.0, paused, {"j1": State.SUCCEEDED, "j2": State.FAILED}) == Hold(after=("j2",))


def held_world() -> World:
    world = World([FOUR])
    submit(world, "j1", "ann")
    world.settle()
    submit(world, "j2", "bob", priority=1, after=("j1",))
    submit(world, "j3", "bob", after=("j2",))
    world.settle()
    assert world.sizes() == {"j1": 4, "j2": 0, "j3": 0}
    assert world.rows["j2"].reason == "waits for the success of j1"
    return world


def test_a_failure_stops_all_that_wait_for_it() -> None:
    world = held_world()
    world.rows["j1"] = replace(world.rows["j1"], wanted=Wanted.STOP)
    world.settle()
    assert [row.state for row in world.rows.values()] == [State.STOPPED] * 3
    assert world.rows["j3"].reason == "j2 has stopped: this job was to run after its success"


def test_a_job_starts_at_its_time_and_the_loop_looks_again_then() -> None:
    world = World([FOUR])
    submit(world, "j1", "ann", begin=5000.0)
    assert world.step().again_at == 5000.0
    world.settle()
    assert world.sizes() == {"j1": 0}
    world.now = 5000.0
    world.settle()
    assert world.sizes() == {"j1": 4}


def test_only_so_many_jobs_of_an_array_run_at_a_time() -> None:
    world = World([FOUR])
    for index in range(3):
        submit(world, f"j{index}", "ann", high=1, array_id="a", array_index=index, array_limit=2)
    submit(world, "j3", "bob", high=1, array_id="a", array_index=0, array_limit=2)  # another one of that name
    world.settle()
    assert world.sizes() == {"j0": 1, "j1": 1, "j2": 0, "j3": 1}
    assert world.rows["j2"].reason == "waits: its array runs at most 2 at a time"
    assert world.rows["j2"].why is None
    world.rows["j0"] = replace(world.rows["j0"], wanted=Wanted.PAUSE)
    world.settle()
    assert world.sizes() == {"j0": 0, "j1": 1, "j2": 1, "j3": 1}
    world.rows["j0"] = replace(world.rows["j0"], wanted=Wanted.RUN)
    world.end("j1", 0)
    world.settle()
    assert world.sizes() == {"j0": 1, "j2": 1, "j3": 1}
