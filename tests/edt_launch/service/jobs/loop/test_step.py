"""One step of the loop: devices change hands, and only when they are free."""

from dataclasses import replace
from typing import Any

import pytest

from edt_launch.allocator.model import Binding, HostDevices, Reason
from edt_launch.service.cluster.records import AllocationRecord, HostRecord, ShareRecord
from edt_launch.service.jobs.loop.device_grant import DeviceGrant
from edt_launch.service.jobs.loop.observed import (
    Launch,
    Move,
    Note,
    ObservedJob,
    ObservedLauncher,
    ObservedState,
    Prepare,
    Remember,
    Send,
    WriteFile,
)
from edt_launch.service.jobs.loop.progress import JobProgress, LauncherRun
from edt_launch.service.jobs.loop.step import REPEAT, as_job, explained, inputs, is_wanted
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State, Wanted
from simulated_pool import World, submit

FOUR = HostRecord("h", ("0", "1", "2", "3"))


@pytest.fixture
def world() -> World:
    """Four devices, one job, which has them all."""
    world = World([FOUR])
    submit(world, "j1", "ann")
    world.settle()
    assert world.rows["j1"].state is State.RUNNING
    assert world.sizes() == {"j1": 4}
    return world


def remembered(world: World, job: str) -> list[AllocationRecord]:
    """What a step adds to a job's history."""
    actions = world.step().actions
    return [one.change for one in actions if isinstance(one, Remember) and one.job == job]


def test_a_job_is_started_in_an_order_that_a_crash_cannot_spoil() -> None:
    world = World([FOUR])
    submit(world, "j1", "ann")
    kinds = [type(action) for action in world.step().actions]
    assert kinds == [Prepare, WriteFile, Move, Launch, Remember]


def test_devices_are_handed_over_when_their_workers_are_gone(world: World) -> None:
    submit(world, "j2", "bob")
    assert [(one.before, one.after, len(one.leaving[0][1])) for one in remembered(world, "j1")] == [(4, 2, 2)]
    assert world.files["j1"].size == 2
    assert len(world.files["j1"].leaving[0].devices) == 2
    for part in (world.read, world.follow):
        part("j1")
        assert (remembered(world, "j1"), "j2" in world.processes) == ([], False)
    world.release("j1")
    assert [(one.before, one.after, one.leaving) for one in remembered(world, "j1")] == [(2, 2, ())]
    assert "j2" in world.processes
    assert world.sizes() == {"j1": 2, "j2": 2}


def test_a_job_that_cannot_save_keeps_its_devices_unless_somebody_agrees() -> None:
    world = World([FOUR])
    world.is_elastic = False
    submit(world, "j1", "ann")
    world.settle()
    assert world.rows["j1"].would_lose
    submit(world, "j2", "bob", priority=1)
    world.settle()
    assert world.sizes() == {"j1": 4, "j2": 0}
    world.last = None  # another service
    world.settle()
    assert world.sizes() == {"j1": 4, "j2": 0}
    world.rows["j1"] = replace(world.rows["j1"], may_lose=True)
    world.settle()
    assert world.sizes()["j2"]


def test_workers_that_fail_are_in_the_history_once(world: World) -> None:
    world.progress["j1"] = replace(world.progress["j1"], losses=2)
    assert [(one.lost, one.before, one.after, one.reason) for one in remembered(world, "j1")] == [
        (2, 4, 4, "2 workers have failed")
    ]
    assert world.rows["j1"].losses == 2
    assert remembered(world, "j1") == []
    world.progress["j1"] = replace(world.progress["j1"], losses=3)
    assert [one.reason for one in remembered(world, "j1")] == ["a worker has failed"]


def test_a_job_moves_onto_one_host_in_one_resize() -> None:
    world = World([HostRecord("a", ("0", "1", "2")), HostRecord("b", ("0", "1", "2"))])
    for name in ("j0", "j1", "j2"):
        submit(world, name, "ann", high=2)
        world.settle()
    before = world.files["j2"]
    assert [part.host for part in before.held] == ["a", "b"]
    world.end("j0", 0)
    world.step()
    moved = world.files["j2"]
    assert moved.held == (HostDevices("a", (*before.held[0].devices, "0")),)
    assert moved.leaving == before.held[1:]
    assert moved.generation == before.generation + 1
    assert world.rows["j2"].resized == world.now
    assert world.rows["j2"].reason.startswith("moves its 2 workers onto a")
    submit(world, "j3", "bob", low=2, high=2)
    world.step()
    assert "j3" not in world.processes
    world.settle()
    assert world.sizes() == {"j1": 2, "j2": 2, "j3": 2}
    assert world.files["j2"].held == moved.held


def test_a_device_that_was_given_and_taken_away_may_still_get_a_worker() -> None:
    world = World([FOUR])
    submit(world, "j1", "ann", high=2)
    world.settle()
    world.rows["j1"] = replace(world.rows["j1"], max=4)
    world.processes["j1"].bounds = (1, 4)
    run = world.progress["j1"].run
    assert run is not None
    world.progress["j1"] = replace(world.progress["j1"], run=replace(run, max_np=4))
    world.step()
    assert world.files["j1"].size == 4
    world.read("j1")
    submit(world, "j2", "bob")
    world.step()
    assert world.files["j1"].size == 2
    world.step()
    assert "j2" not in world.processes
    world.follow("j1")  # the older one
    world.step()
    assert "j2" not in world.processes
    world.settle()
    assert world.sizes() == {"j1": 2, "j2": 2}


def test_what_a_killed_launcher_has_left_is_cleared_away_before_others_get_its_devices(world: World) -> None:
    submit(world, "j2", "bob", low=4)
    world.kill("j1")
    world.step()
    assert not world.processes
    world.step()
    assert list(world.processes) in (["j1"], ["j2"])


def test_a_job_on_its_way_out_keeps_its_devices(world: World) -> None:
    world.rows["j1"] = replace(world.rows["j1"], wanted=Wanted.PAUSE)
    submit(world, "j2", "bob")
    decided = world.step()
    assert [action for action in decided.actions if isinstance(action, Send)]
    assert world.rows["j1"].state is State.PAUSING
    world.step()
    assert "j2" not in world.processes
    world.obey("j1")
    world.step()
    assert world.rows["j1"].state is State.PAUSED
    assert "j2" in world.processes


@pytest.mark.parametrize("following", [0, 7])
def test_a_file_that_its_launcher_does_not_take_for_newer_is_written_again(
    world: World, following: int
) -> None:
    run = world.progress["j1"].run
    assert run is not None
    world.progress["j1"] = replace(world.progress["j1"], run=replace(run, following=following))
    before = world.files["j1"]
    world.rows["j1"] = replace(world.rows["j1"], granted_at=world.now - REPEAT + 1.0)
    assert world.step().actions == ()
    world.now += 1.0
    assert [type(action) for action in world.step().actions] == [WriteFile, Note]
    after = world.files["j1"]
    assert (after.held, after.generation) == (before.held, max(before.generation, following) + 1)
    assert world.step().actions == ()


def test_a_job_that_cannot_be_looked_at_keeps_its_devices_and_is_left_alone(world: World) -> None:
    world.hidden.add("j1")
    submit(world, "j2", "bob")
    assert [(type(action), action.job) for action in world.step().actions] == [(Note, "j1"), (Note, "j2")]


def test_what_a_crash_kept_from_the_history_is_added(world: World) -> None:
    world.rows["j1"] = replace(world.rows["j1"], generation=0, size=0)
    actions = world.step().actions
    assert [type(action) for action in actions] == [Note, Remember]
    assert world.rows["j1"].size == 4


def test_jobs_of_an_owner_without_budget_save_their_state_and_wait() -> None:
    world = World([FOUR], [ShareRecord("", None), ShareRecord("ann", budget=1.0, used=0.5, usage_at=1000.0)])
    submit(world, "j1", "ann", high=2)
    submit(world, "j2", "bob", high=2)
    world.step()
    world.now += 890.0
    world.settle(1)
    assert world.sizes() == {"j1": 2, "j2": 2}
    world.settle()
    assert world.sizes() == {"j1": 0, "j2": 2}
    assert world.rows["j1"].state is State.QUEUED
    assert world.rows["j1"].reason == "waits: ann has used its budget of 1 GPU hours"
    world.shares = (ShareRecord("", None), ShareRecord("ann", budget=2.0))
    world.settle()
    assert world.sizes() == {"j1": 2, "j2": 2}


def test_why_a_job_has_no_more_than_its_program_can_use() -> None:
    at_most = Reason(Binding.MAX, 4.0, 2, (), "has 2 of 2 (its maximum)", "A higher --max ...")
    run = LauncherRun(min_np=1, max_np=4, usable=2)
    told = explained(run, 4, at_most)
    assert told is not None
    assert told.text == "has 2: its program has said that it can use 2 at most"
    for other in (None, LauncherRun(max_np=4), LauncherRun(max_np=2, usable=2)):
        assert explained(other, 4, at_most) == at_most
    by_share = replace(at_most, binding=Binding.SHARE)
    assert (explained(run, 2, at_most), explained(run, 4, by_share)) == (at_most, by_share)


ME = (7, 0.5)
HELD = (HostDevices("h", ("0", "1")),)
LEFT = (HostDevices("h", ("2",)),)
RECORD = JobRecord("j1", "ann", ("x",), 2, 4, 100.0, priority=3, weight=2.0, running_since=150.0)


def job(state: State, **fields: Any) -> ObservedJob:
    run = LauncherRun(*ME, min_np=1, max_np=4, following=1)
    launcher = ObservedLauncher(is_alive=state is not State.QUEUED, identity=ME)
    record = replace(RECORD, state=state, **fields)
    return ObservedJob(record, DeviceGrant(2, HELD, LEFT), JobProgress(run), launcher)


@pytest.mark.parametrize("state", [State.PAUSING, State.STOPPING, State.SUSPENDING])
def test_one_on_its_way_out_wants_nothing_and_keeps_what_it_uses(state: State) -> None:
    asked = as_job(job(state), protected=300.0)
    assert (asked.min, asked.max, asked.held) == (0, 0, ())
    assert asked.leaving == (HostDevices("h", ("0", "1", "2")),)


def test_one_that_cannot_be_looked_at_wants_what_it_has() -> None:
    hidden = replace(job(State.RUNNING, min=1), trouble="its files cannot be read: Input/output error")
    (asked,) = inputs(200.0, ObservedState(), [hidden])[1]
    assert (asked.min, asked.max, asked.held, asked.leaving) == (2, 2, HELD, LEFT)
    assert not is_wanted(replace(job(State.QUEUED), trouble="its files cannot be read: Input/output error"))


@pytest.mark.parametrize(
    "low, high, usable, expected",
    [(1, 2, None, (1, 2)), (3, 9, None, (3, 4)), (5, 9, None, (4, 4)), (2, 4, 3, (2, 3)), (2, 4, 1, (1, 1))],
)
def test_bounds_count_as_far_as_the_launcher_and_the_program_go_along(
    low: int, high: int, usable: int | None, expected: tuple[int, int]
) -> None:
    one = job(State.RUNNING, min=low, max=high)
    assert one.run is not None
    asked = as_job(replace(one, progress=JobProgress(replace(one.run, usable=usable))), 300.0)
    assert (asked.min, asked.max, asked.held, asked.leaving) == (*expected, HELD, LEFT)


@pytest.mark.parametrize(
    "source, counts", [("nvidia", True), ("host file", True), ("slots", False), ("cores", False)]
)
def test_speeds_measured_on_shared_processors_count_for_nothing(source: str, counts: bool) -> None:
    hosts = (replace(FOUR, source=source),)
    assert inputs(200.0, ObservedState(hosts=hosts), [])[0].options.by_speedup is counts


def test_users_without_a_place_hang_below_the_root() -> None:
    shares = (ShareRecord("", None), ShareRecord("lab", weight=3.0))
    fields = ObservedState(hosts=(HostRecord("h", ("0", "1"), is_draining=True),), shares=shares)
    cluster, _ = inputs(200.0, fields, [job(State.RUNNING), job(State.PAUSED)])
    assert [(owner.name, owner.parent, owner.weight) for owner in cluster.owners] == [
        ("", None, 1.0),
        ("lab", "", 3.0),
        ("ann", "", 1.0),
    ]
    assert [(host.name, host.is_draining) for host in cluster.hosts] == [("h", True)]
