"""The membership protocol, driven by simulated workers and a clock that the test holds."""

import pytest

from edt_launch.core.history import events
from edt_launch.membership import protocol
from edt_launch.membership.step import GROWTH_INTERVAL, LEAVE_TIMEOUT, SAVE_TIMEOUT
from simulated import Job, members, of, slots


def test_first_world_waits_for_every_worker() -> None:
    job = Job()
    assert [a.worker.slot for a in job(protocol.Desired(slots(2)))] == list(slots(2))
    assert job(protocol.Ready(0, 0)) == []
    (assign,) = job(protocol.Ready(1, 0))
    assert (assign.generation, [p.worker for p in assign.assignments], assign.previous_size) == (
        1,
        [0, 1],
        None,
    )


def test_survivors_train_on_until_all_newcomers_are_ready() -> None:
    job = Job().grown_to(2)
    assert len(of(protocol.Start, job(protocol.Desired(slots(4))))) == 2
    assert job(protocol.Ready(2, 0)) == []
    assert job(protocol.Ready(3, 0)) == [protocol.StopWorkers((0, 1), 2)]
    assert job(protocol.Ready(0, 7)) == []
    assert members(job(protocol.Ready(1, 7))) == [0, 1, 2, 3]


def test_a_removal_does_not_wait_for_newcomers() -> None:
    job = Job().grown_to(2)
    actions = job(protocol.Desired((protocol.Slot("a", 0), protocol.Slot("b", 0), protocol.Slot("b", 1))))
    assert of(protocol.StopWorkers, actions) == [protocol.StopWorkers((0, 1), 2)]
    job(protocol.Ready(0, 3))
    assign, dismiss = job(protocol.Ready(1, 3))
    assert [p.worker for p in assign.assignments] == [0]
    assert dismiss == protocol.Dismiss(1)


def test_a_slot_is_filled_again_only_when_its_last_worker_is_gone() -> None:
    job = Job().grown_to(2)
    job(protocol.Desired(slots(1)))
    job(protocol.Ready(0, 1))
    job(protocol.Ready(1, 1))
    assert of(protocol.Start, job(protocol.Desired(slots(2)))) == []
    assert len(of(protocol.Start, job(protocol.Exited(1, 0)))) == 1


def test_nobody_begins_anew_while_the_state_is_saved() -> None:
    job = Job().grown_to(1)
    job(protocol.Leaving(0, "SIGTERM"))
    assert job(protocol.Ready(0, 5000)) == [protocol.Dismiss(0, saves=True)]
    assert job(protocol.Desired((protocol.Slot("b", 0),))) == []
    job.now += SAVE_TIMEOUT
    assert job(protocol.Tick()) == [protocol.Terminate(0)]
    *_, finish = job(protocol.Exited(0, 137))
    assert finish.left


def test_the_state_moves_through_a_donor_when_every_slot_changes() -> None:
    job = Job().grown_to(2)
    job(protocol.Desired(slots(0, 2)))
    assert of(protocol.StopWorkers, job(protocol.Ready(2, 0))) == []
    assert job(protocol.Ready(3, 0)) == [protocol.StopWorkers((0, 1), 2)]
    job(protocol.Ready(0, 4))
    assign, dismiss = job(protocol.Ready(1, 4))
    assert dismiss == protocol.Dismiss(1)
    assert [p.worker for p in assign.assignments] == [0, 2, 3]
    assert of(protocol.StopWorkers, job(protocol.Tick())) == [], "nobody else has the state"
    job.now += GROWTH_INTERVAL
    assert of(protocol.StopWorkers, job(protocol.Synced(2))) == [protocol.StopWorkers((0, 2, 3), 3)]


def test_nobody_joins_once_training_is_done() -> None:
    job = Job().grown_to(1)
    job(protocol.Desired(slots(2)))
    assert job(protocol.Done(0)) == [protocol.Terminate(1)]
    assert isinstance(job(protocol.Exited(1, 143))[0], events.Left)
    assert job(protocol.Exited(0, 0)) == [events.Finished(0, "finished")]


def test_a_worker_that_does_not_leave_is_ended() -> None:
    job = Job().grown_to(2)
    job(protocol.Desired(slots(1)))
    job(protocol.Ready(0, 1))
    assert protocol.Dismiss(1) in job(protocol.Ready(1, 1))
    job.now += LEAVE_TIMEOUT - 1
    assert job(protocol.Tick()) == []
    job.now += 1
    assert job(protocol.Tick()) == [protocol.Terminate(1)]
    assert job(protocol.Tick()) == []


def test_a_world_that_would_only_grow_has_a_while_for_itself() -> None:
    job = Job().grown_to(1)
    job(protocol.Desired(slots(2)))
    job(protocol.Ready(1, 0))
    job(protocol.Ready(0, 1))
    job(protocol.Desired(slots(3)))
    assert job(protocol.Ready(2, 0)) == []
    assert job(protocol.Desired(slots(1))) == [protocol.Dismiss(2), protocol.StopWorkers((0, 1), 3)], (
        "a removal does not wait"
    )
    job = Job().grown_to(1)
    job(protocol.Desired(slots(2)))
    assert job(protocol.Ready(1, 0)) == [protocol.StopWorkers((0,), 2)]


def test_the_last_with_the_state_waits_for_an_heir_before_it_leaves() -> None:
    job = Job().grown_to(1)
    job(protocol.Desired(slots(2)))
    assert of(protocol.StopWorkers, job(protocol.Leaving(0, "SIGTERM"))) == []
    assert of(protocol.StopWorkers, job(protocol.Ready(1, 0))) == [protocol.StopWorkers((0,), 2)]
    assert members(job(protocol.Ready(0, 5))) == [0, 1]
    assert of(protocol.StopWorkers, job(protocol.Tick())) == []
    assert of(protocol.StopWorkers, job(protocol.Synced(1))) == [protocol.StopWorkers((0, 1), 3)]
    assert job(protocol.Ready(0, 6)) == [protocol.Dismiss(0)]


def test_when_the_last_with_the_state_leaves_the_job_ends() -> None:
    job = Job().grown_to(1)
    assert of(protocol.StopWorkers, job(protocol.Leaving(0, "SIGTERM"))) == [protocol.StopWorkers((0,), 2)]
    assert of(protocol.Dismiss, job(protocol.Ready(0, 5))) == [protocol.Dismiss(0, saves=True)]
    *_, finish = job(protocol.Exited(0, 0))
    assert finish == events.Finished(1, "rank 0 on a left (SIGTERM), the last with the state", left=True)


def test_when_the_job_is_to_pause_all_leave_and_nobody_is_started() -> None:
    job = Job().grown_to(2)
    job(protocol.Desired(slots(3)))
    actions = job(protocol.PauseWanted("a pause"))
    assert of(protocol.Terminate, actions) == [protocol.Terminate(2)]
    assert of(protocol.StopWorkers, actions) == [protocol.StopWorkers((0, 1), 2)]
    assert job(protocol.Desired(slots(4))) == []
    assert of(protocol.Start, job(protocol.Exited(2, 143))) == []
    actions = [action for worker in (0, 1) for action in job(protocol.Ready(worker, 5 + worker))]
    assert of(protocol.Dismiss, actions) == [protocol.Dismiss(0), protocol.Dismiss(1, saves=True)]
    job(protocol.Exited(0, 0))
    *_, finish = job(protocol.Exited(1, 0))
    assert finish == events.Finished(1, "rank 1 on a left (a pause), the last with the state", left=True)


@pytest.mark.parametrize("event", [protocol.Tick(), protocol.Desired(slots(3))])
def test_deciding_again_changes_nothing(event: protocol.Event) -> None:
    job = Job().grown_to(3)
    assert job(event) == []
    before = job.state
    assert job(event) == []
    assert job.state == before
