"""One step of the loop: devices change hands, and only when they are free."""

from dataclasses import replace

import pytest

from edt_launch.jobs.observed import Launch, Move, Note, ObservedState, Prepare, Remember, Send, WriteFile
from edt_launch.jobs.step import REPEAT, step
from edt_launch.service.database.records import HostRecord
from edt_launch.service.states import State, Wanted
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


def test_a_job_is_started_in_an_order_that_a_crash_cannot_spoil() -> None:
    world = World([FOUR])
    submit(world, "j1", "ann")
    kinds = [type(action) for action in world.step().actions]
    assert kinds == [Prepare, WriteFile, Move, Launch, Remember]


def test_the_bounds_that_a_job_is_started_with_are_written_down() -> None:
    world = World([FOUR])
    submit(world, "j1", "ann", high=3)
    world.settle()
    assert world.rows["j1"].bounds == (1, 3)


def test_devices_are_handed_over_when_their_workers_are_gone(world: World) -> None:
    submit(world, "j2", "bob")
    world.step()
    assert world.files["j1"].size == 2
    assert len(world.files["j1"].leaving[0].devices) == 2
    for part in (world.read, world.follow):
        part("j1")
        world.step()
        assert "j2" not in world.processes
    world.release("j1")
    world.step()
    assert "j2" in world.processes
    assert world.sizes() == {"j1": 2, "j2": 2}


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
    world.rows["j1"] = replace(world.rows["j1"], notes={"written": world.now - REPEAT + 1.0})
    assert world.step().actions == ()
    world.now += 1.0
    assert [type(action) for action in world.step().actions] == [WriteFile, Note]
    after = world.files["j1"]
    assert (after.held, after.generation) == (before.held, max(before.generation, following) + 1)
    assert world.step().actions == ()


def test_a_job_that_cannot_be_looked_at_keeps_its_devices_and_is_left_alone(world: World) -> None:
    hidden = replace(world.job("j1"), is_hidden=True)
    submit(world, "j2", "bob")
    decided = step(world.now, ObservedState((hidden, world.job("j2")), tuple(world.hosts.values())))
    assert [action.job for action in decided.actions if isinstance(action, Note)] == ["j2"]
    assert len(decided.actions) == 1


def test_nothing_new_nothing_to_do(world: World) -> None:
    world.step()
    assert world.step().actions == ()


def test_what_a_crash_kept_from_the_history_is_added(world: World) -> None:
    world.rows["j1"] = replace(world.rows["j1"], generation=0, size=0)
    actions = world.step().actions
    assert [type(action) for action in actions] == [Note, Remember]
    assert world.rows["j1"].size == 4


def test_a_job_whose_min_does_not_fit_waits_with_a_reason(world: World) -> None:
    submit(world, "j2", "bob", low=5, high=8)
    world.settle()
    row = world.rows["j2"]
    assert row.state is State.QUEUED
    assert row.why is not None
    assert row.reason == row.why["text"] != ""
    assert [move for move in world.step().actions if isinstance(move, Move)] == []
