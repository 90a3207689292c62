"""The status of a job, folded from its events."""

from functools import reduce

from edt_launch.launcher.view.pace import Mark
from edt_launch.launcher.view.status import HISTORY, Resize, Standby, Status, WarmServer


def world(generation, size, reason=""):
    return {"event": "world", "time": 0, "generation": generation, "size": size, "reason": reason}


def progress(step, size=2, **values):
    return {"event": "progress", "time": step, "step": step, "epoch": 0, "size": size, "values": values}


def resumed(generation, pause):
    return {"event": "resumed", "time": 0, "generation": generation, "from": 2, "to": 4, "pause": pause}


def fold(*events):
    return reduce(Status.observe, events, Status())


def test_a_jobs_course():
    status = fold(
        {"event": "started", "worker": 0},
        {"event": "started", "worker": 1},
        {"event": "ready", "worker": 0},
        world(1, 2),
        progress(5, loss=0.5, total_steps=100),
        progress(6, loss=0.4),
    )
    assert (status.size, status.generation, status.step, status.total, status.epoch) == (2, 1, 6, 100, 0)
    assert status.values == {"loss": 0.4, "total_steps": 100}
    assert status.history == (Mark(5, 5, 2, 1), Mark(6, 6, 2, 1))
    assert status.starting == {1}
    assert status.resizes == ()
    done = status.observe({"event": "finished", "exit_code": 0, "reason": "done"})
    assert (done.exit_code, done.reason) == (0, "done")


def test_resizes_have_the_step_and_their_own_pause():
    status = fold(world(1, 2), progress(5), world(2, 4, "grown"), world(3, 1, "shrunk"), resumed(3, 0.25))
    assert status.resizes == (Resize(2, 5, 2, 4, None, "grown"), Resize(3, 5, 4, 1, 0.25, "shrunk"))


def test_a_lost_worker_shows_in_the_size_before():
    assert fold(world(1, 3), world(2, 2, "lost")).resizes == (Resize(2, None, 3, 2, None, "lost"),)


def test_what_is_unknown_or_odd_changes_nothing():
    status = fold(world(1, 2), progress(5))
    for event in (
        {"event": "of another time"},
        {"event": "world"},
        {"event": "progress", "step": "x"},
        {"event": "resumed", "generation": 1, "pause": None},
        resumed(9, 1.0),
    ):
        assert status.observe(event) == status
    assert fold(progress(1, total_steps="many")).total is None
    assert fold(progress(1, total_steps=0)).total is None


def test_the_history_is_bounded():
    status = fold(*(progress(step) for step in range(HISTORY + 10)))
    assert len(status.history) == HISTORY
    assert status.step == HISTORY + 9


def standby(waited):
    return {"event": "standby", "worker": 1, "waited": waited, "processor": 0.5, "private": 7}


def test_the_cost_of_newcomers_counts_from_the_first_resize_on():
    status = fold(world(1, 2), standby(1.0), world(2, 4, "grown"), standby(2.0))
    assert status.standbys == (Standby(2.0, 0.5, 7),)


def test_the_latest_warm_server_of_a_host_that_forks():
    server = {"event": "warm_server", "host": "a", "private": None, "refused": None}
    refusing = {"event": "warm_server", "host": "b", "seconds": 3.0, "private": 7, "refused": "threads"}
    status = fold({**server, "seconds": 1.0}, {**server, "seconds": 2.0}, refusing)
    assert status.warm_servers == {"a": WarmServer(2.0, None)}


def test_a_restart_begins_with_a_first_world():
    status = fold(world(1, 2), progress(5), world(2, 4, "grown"), resumed(2, 0.5), progress(9, 4))
    status = status.observe({"event": "finished", "exit_code": 1, "reason": "lost"})
    again = status.observe({"event": "restarting", "reason": "lost", "restart": 1, "of": 3})
    assert (again.size, again.generation, again.exit_code, again.step) == (None, 0, None, 9)
    assert again.resizes == status.resizes
    again = reduce(Status.observe, (world(1, 3), world(2, 2, "shrunk"), resumed(2, 0.1)), again)
    assert again.resizes == (Resize(2, 5, 2, 4, 0.5, "grown"), Resize(2, 9, 3, 2, 0.1, "shrunk"))


def test_the_last_checkpoint():
    status = fold(world(1, 2), {"event": "restored", "step": 7, "path": "x"})
    assert status.checkpoint == 7
    assert status.observe({"event": "checkpointed", "step": 9}).checkpoint == 9
