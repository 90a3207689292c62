"""Too few workers can run: it is told, and has an end."""

from dataclasses import replace

from edt_launch.core.history import events
from edt_launch.membership import protocol
from edt_launch.membership.lateness import HOLD_UP
from edt_launch.membership.members import NOTICE_SUSPENSION
from edt_launch.membership.step import LEAVE_TIMEOUT, SAVE_TIMEOUT
from simulated import Job, of, slots


def test_too_few_survivors_wait_for_a_limited_time() -> None:
    job = Job(min_size=2).grown_to(2)
    job(protocol.Exited(1, 137))
    (waiting,) = job(protocol.Ready(0, 1))
    assert isinstance(waiting, events.Waiting)
    job.state = replace(job.state, desired=slots(1))
    job.now += job.state.limits.shortage_timeout + 1
    assert job(protocol.Tick()) == [protocol.Dismiss(0, saves=True)]
    assert job(protocol.Desired(slots(2))) == [], "who comes too late changes nothing"
    *_, finish = job(protocol.Exited(0, 0))
    assert finish == events.Finished(1, "fewer than 2 workers could run for 600 s")


def test_the_farthest_of_too_few_survivors_saves_the_state() -> None:
    job = Job(min_size=3).grown_to(3)
    job(protocol.Exited(1, 137))
    job(protocol.Ready(0, 4))
    job(protocol.Ready(2, 5))
    job.now += job.state.limits.shortage_timeout
    told = job(protocol.Tick())
    assert of(protocol.Dismiss, told) == [protocol.Dismiss(0), protocol.Dismiss(2, saves=True)]
    assert of(protocol.Terminate, told) == [
        protocol.Terminate(action.worker.id) for action in of(protocol.Start, told)
    ]
    job.now += LEAVE_TIMEOUT
    assert of(protocol.Terminate, job(protocol.Tick())) == [protocol.Terminate(0)], "who saves has more time"
    job.now += SAVE_TIMEOUT - LEAVE_TIMEOUT
    assert protocol.Terminate(2) in job(protocol.Tick()), "it is not waited for without an end"


def test_a_notice_stops_the_world_even_if_too_few_stay() -> None:
    job = Job(min_size=2).grown_to(2)
    assert of(protocol.StopWorkers, job(protocol.Leaving(1, "spot"))) == [protocol.StopWorkers((0, 1), 2)]
    assert of(protocol.Dismiss, job(protocol.Ready(1, 3))) == [protocol.Dismiss(1)]
    (waiting,) = job(protocol.Ready(0, 3))
    timeout = job.state.limits.shortage_timeout
    missing = events.MissingWorker("a", 1, "left: spot", NOTICE_SUSPENSION)
    assert waiting == events.Waiting(1, 2, timeout, 2, (missing,))
    assert job(protocol.Tick()) == [], "told once"
    job(protocol.Exited(1, 0))
    job.now += 1
    start, waiting = job(protocol.Desired((protocol.Slot("a", 0), protocol.Slot("b", 0))))
    assert isinstance(start, protocol.Start)
    assert waiting == events.Waiting(1, 2, timeout - 1, 2, (events.MissingWorker("b", 0, "is starting"),))
    (assign,) = job(protocol.Ready(2, 0))
    assert isinstance(assign, protocol.Assign)
    assert job.state.shortage is None


def test_a_first_world_that_never_comes_about_has_an_end() -> None:
    job = Job(min_size=2)
    job(protocol.Desired(slots(2)))
    job(protocol.Ready(0, 0))
    job.now += HOLD_UP
    assert of(events.Waiting, job(protocol.Tick()))
    job.now += job.state.limits.shortage_timeout
    job(protocol.Tick())
    assert job.state.outcome is not None
