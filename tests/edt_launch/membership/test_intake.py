"""What an event changes by itself: deaths, hangs, notices, ends."""

import pytest

from edt_launch.core.history import events
from edt_launch.membership import protocol
from edt_launch.membership.lateness import TOLD_AFTER
from edt_launch.membership.members import MAX_SUSPENSION, NOTICE_SUSPENSION, START_FAILURES, SUSPENSION
from edt_launch.membership.step import GROWTH_INTERVAL
from simulated import Job, members, of, slots


def test_a_worker_that_dies_takes_only_its_slot_with_it() -> None:
    job = Job().grown_to(3)
    failed, cut = job(protocol.Exited(1, 137))
    assert (failed.host, failed.slot) == ("a", 1)
    assert failed.retry_after == SUSPENSION
    assert cut == protocol.Cut((0, 2), 1)
    job(protocol.Ready(0, 9))
    (assign,) = job(protocol.Ready(2, 9))
    assert [p.worker for p in assign.assignments] == [0, 2]
    assert assign.previous_size == 3
    job.now += SUSPENSION
    (start,) = job(protocol.Tick())
    assert start.worker.slot == protocol.Slot("a", 1)


def test_a_worker_that_is_killed_before_the_first_world_costs_its_slot_for_a_while() -> None:
    job = Job()
    job(protocol.Desired(slots(2)))
    job(protocol.Ready(0, 0))
    for failure in range(1, START_FAILURES):
        failed, *_ = job(protocol.Exited(max(job.state.workers), 137))
        assert failed.retry_after == SUSPENSION * 2 ** (failure - 1)
        if failure == 1:
            assert len(job.state.world) == 1  # the other one need not wait
        job.now += failed.retry_after
        assert len(of(protocol.Start, job(protocol.Tick()))) == 1


def test_a_host_that_cannot_be_reached_is_tried_at_the_same_interval() -> None:
    job = Job().grown_to(2)
    job(protocol.Exited(1, 255, host_loss=protocol.HostLoss.LOST))
    job(protocol.Ready(0, 1))
    for _ in range(5):
        job.now += SUSPENSION
        (start,) = of(protocol.Start, job(protocol.Tick()))
        (failed, *_) = job(protocol.Exited(start.worker.id, 255, host_loss=protocol.HostLoss.UNREACHED))
        assert failed.retry_after == SUSPENSION


def test_a_job_begins_without_hosts_that_cannot_be_reached_but_not_without_any() -> None:
    job = Job()
    job(protocol.Desired((protocol.Slot("a", 0), protocol.Slot("b", 0))))
    job(protocol.Exited(1, 255, host_loss=protocol.HostLoss.UNREACHED))
    assert job.state.outcome is None
    job(protocol.Exited(0, 255, host_loss=protocol.HostLoss.UNREACHED))
    assert "before training began" in job.state.outcome.reason


THREE_HOSTS = protocol.Desired((protocol.Slot("a", 0), protocol.Slot("b", 0), protocol.Slot("c", 0)))


def test_a_job_begins_without_a_host_that_lacks_what_its_program_needs() -> None:
    for worker, exit_code, host_loss in ((1, 127, protocol.HostLoss.UNFIT), (1, 1, None)):
        job = Job(min_size=2)
        job(THREE_HOSTS)
        if host_loss is None:
            job(protocol.Ready(0, 0))  # elsewhere it works
        (failed, *_) = job(protocol.Exited(worker, exit_code, host_loss=host_loss))
        assert (failed.host, failed.retry_after) == ("b", SUSPENSION)
        job(protocol.Ready(0, 0))
        job(protocol.Ready(2, 0))
        assert [worker.slot.host for worker in job.state.world] == ["a", "c"]


def test_a_host_on_which_nothing_has_begun_spoils_no_success() -> None:
    for host_loss, exit_code in (
        (protocol.HostLoss.UNREACHED, 0),
        (protocol.HostLoss.UNFIT, 0),
        (protocol.HostLoss.LOST, 1),
    ):
        job = Job(min_size=1)
        job(protocol.Desired((protocol.Slot("a", 0), protocol.Slot("b", 0))))
        job(protocol.Exited(0, 0))
        job(protocol.Exited(1, 255, host_loss=host_loss))
        assert job.state.outcome is not None
        assert job.state.outcome.exit_code == exit_code


def test_a_program_that_fails_on_too_many_hosts_ends_the_job() -> None:
    for host_loss, reason in (
        (protocol.HostLoss.UNFIT, "rank 0 on a failed"),
        (None, "rank 1 on b failed"),
    ):
        job = Job(min_size=2)
        job(THREE_HOSTS)
        for worker in (1, 2, 0):
            if job.state.outcome is None:
                job(protocol.Exited(worker, 1, host_loss=host_loss))
        assert job.state.outcome == events.Finished(1, reason)


def test_members_that_are_to_go_at_once_are_ended_if_others_have_the_state() -> None:
    job = Job().grown_to(3)
    actions = job(protocol.Desired(slots(1), at_once=True))
    assert of(protocol.Terminate, actions) == [protocol.Terminate(1), protocol.Terminate(2)]
    assert of(protocol.Cut, actions) == [protocol.Cut((0,), 1)]
    assert job(protocol.Exited(1, -9))[0] == events.Left(1)
    assert job(protocol.Exited(2, 143))[0] == events.Left(2)
    assert members(job(protocol.Ready(0, 7))) == [0]
    other = Job().grown_to(1)
    assert of(protocol.Terminate, other(protocol.Desired((protocol.Slot("b", 0),), at_once=True))) == []


def test_a_host_that_is_lost_again_and_again_before_training_begins_does_not_end_the_job() -> None:
    job = Job(min_size=2)
    job(protocol.Desired((protocol.Slot("a", 0), protocol.Slot("b", 0))))
    for _ in range(START_FAILURES):
        worker = next(w.id for w in job.state.workers.values() if w.slot.host == "b")
        job(protocol.Exited(worker, 255, is_gone=False, host_loss=protocol.HostLoss.LOST))
        assert job.state.outcome is None
        job.now += MAX_SUSPENSION
        job(protocol.Tick())


def test_a_member_that_reaches_the_rendezvous_unasked_tells_the_others() -> None:
    job = Job().grown_to(3)
    assert job(protocol.Ready(1, 4)) == [protocol.Cut((0, 2), 1), protocol.StopWorkers((0, 2), 2)]
    assert job(protocol.Ready(0, 4)) == []
    assert isinstance(job(protocol.Ready(2, 4))[0], protocol.Assign)


@pytest.mark.parametrize(
    "event, finished",
    [
        (protocol.Abort("SIGTERM"), events.Finished(1, "SIGTERM", aborted=True)),
        (protocol.Deadlock("different collectives"), events.Finished(1, "different collectives")),
    ],
)
def test_an_abort_or_a_deadlock_ends_every_process_and_then_the_job(
    event: protocol.Event, finished: events.Finished
) -> None:
    job = Job().grown_to(2)
    assert job(event) == [protocol.Terminate(0), protocol.Terminate(1)]
    job(protocol.Exited(0, 143))
    assert job(protocol.Exited(1, 143))[-1] == finished


def test_a_newcomer_that_has_received_the_state_carries_on() -> None:
    job = Job().grown_to(1)
    job(protocol.Desired(slots(2)))
    job(protocol.Ready(1, 0))
    job(protocol.Ready(0, 9))
    job(protocol.Synced(1))
    job(protocol.Exited(0, 137))
    assert members(job(protocol.Ready(1, 12))) == [1]


def test_programs_without_an_elastic_function_run_to_their_own_ends() -> None:
    job = Job()
    job(protocol.Desired(slots(2)))
    assert job(protocol.Exited(1, 0)) == []
    (finish,) = job(protocol.Exited(0, 0))
    assert finish.succeeded
    assert "without calling an elastic function" in finish.reason


@pytest.mark.parametrize("last", [0, 1])
def test_a_loss_after_others_have_returned_is_no_success(last: int) -> None:
    job = Job().grown_to(2)
    job(protocol.Done(1 - last))
    failed, *_ = job(protocol.Exited(last, 137))
    assert failed.retry_after is None
    finish = job(protocol.Exited(1 - last, 0))[-1]
    assert finish == events.Finished(1, f"rank {last} on a failed before its training function returned")


def test_once_somebody_has_returned_no_slot_is_tried_again() -> None:
    job = Job().grown_to(3)
    job(protocol.Done(0))
    failed, cut = job(protocol.Exited(1, 137))
    assert (failed.retry_after, cut) == (None, protocol.Cut((2,), 1))
    job(protocol.Ready(2, 8))
    job(protocol.Done(2))
    job(protocol.Exited(0, 0))
    assert job(protocol.Exited(2, 0)) == [events.Finished(0, "finished")]


def test_a_member_that_ends_well_in_the_middle_of_training_is_lost() -> None:
    job = Job().grown_to(3)
    failed, cut = job(protocol.Exited(1, 0))
    assert failed.reason == "rank 1 on a ended with exit code 0 in the middle of training"
    assert (failed.retry_after, cut) == (SUSPENSION, protocol.Cut((0, 2), 1))
    assert job.state.outcome is None
    job(protocol.Ready(0, 4))
    assert of(protocol.Assign, job(protocol.Ready(2, 4)))
    assert of(protocol.StopWorkers, job(protocol.Desired(slots(1)))), "the allocation is followed"
    job(protocol.Ready(0, 5))
    job(protocol.Ready(2, 5))
    job(protocol.Exited(2, 0))
    *_, finish = job(protocol.Exited(0, 137))
    assert not finish.succeeded


UNDONE = "rank 0 on a exited with code 0 before the training was done"


@pytest.mark.parametrize("others", [0, 1])
def test_a_worker_that_has_to_train_fails_by_ending_well_before_it_joins(others: int) -> None:
    job = Job(has_to_train=True)
    job(protocol.Desired(slots(1 + others)))
    failed, *_ = job(protocol.Exited(0, 0))
    assert (failed.reason, failed.retry_after) == (UNDONE, None)
    if others:
        job(protocol.Exited(1, 143))
    assert job.state.outcome == events.Finished(1, "rank 0 on a was lost")
    assert job.state.finished


def test_a_worker_that_ends_well_before_an_elastic_one_reaches_the_rendezvous_is_missing() -> None:
    job = Job()
    job(protocol.Desired(slots(3)))
    assert job(protocol.Exited(2, 0)) == []
    (start,) = job(protocol.Ready(0, 0))
    assert start.worker.slot == protocol.Slot("a", 2)
    failed, *_ = job(protocol.Exited(1, 0))
    assert (failed.reason, failed.retry_after) == ("rank 1 on a ended before it could join", SUSPENSION)
    assert job.state.outcome is None


def test_a_worker_with_a_notice_leaves_and_its_slot_is_left_alone_for_a_while() -> None:
    job = Job().grown_to(3)
    noticed, stop = job(protocol.Leaving(1, "SIGTERM"))
    assert (noticed.worker, noticed.reason) == (1, "SIGTERM")
    assert stop == protocol.StopWorkers((0, 1, 2), 2)
    assert job(protocol.Leaving(1, "again")) == []
    job(protocol.Ready(0, 4))
    assert job(protocol.Ready(1, 4)) == [protocol.Dismiss(1)], "it does not wait for the others"
    assert members(job(protocol.Ready(2, 4))) == [0, 2]
    assert len(of(events.Left, job(protocol.Exited(1, 0)))) == 1
    job.now += NOTICE_SUSPENSION - GROWTH_INTERVAL
    assert job(protocol.Tick()) == []
    job.now += GROWTH_INTERVAL
    (start,) = job(protocol.Tick())
    assert start.worker.slot == protocol.Slot("a", 1)


def test_of_workers_that_start_together_one_that_dies_of_sigterm_has_left_on_a_notice() -> None:
    job = Job()
    job(protocol.Desired(slots(2)))
    noticed, left = job(protocol.Exited(1, 143))
    assert isinstance(noticed, events.Leaving)
    assert isinstance(left, events.Left)
    *_, finished = job(protocol.Exited(0, 143))
    assert finished == events.Finished(1, "rank 0 on a failed")


@pytest.mark.parametrize("exit_code", [143, -15])
def test_a_newcomer_that_dies_of_sigterm_has_left_on_a_notice(exit_code: int) -> None:
    job = Job().grown_to(1)
    job(protocol.Desired(slots(2)))
    noticed, left = job(protocol.Exited(1, exit_code))
    assert noticed.worker == left.worker
    assert noticed.reason == "SIGTERM"
    job.now += NOTICE_SUSPENSION
    assert [start.worker.slot for start in job(protocol.Tick())] == [protocol.Slot("a", 1)]


def test_a_worker_that_hangs_is_killed_and_treated_like_a_dead_one() -> None:
    job = Job().grown_to(3)
    failed, cut, terminate, *_ = job(protocol.Hung(1, "is silent"))
    assert (failed.reason, failed.retry_after) == ("is silent", SUSPENSION)
    assert cut == protocol.Cut((0, 2), 1)
    assert terminate == protocol.Terminate(1, at_once=True)
    assert job(protocol.Hung(1, "is silent")) == []
    job(protocol.Ready(0, 4))
    (assign,) = job(protocol.Ready(2, 4))
    assert isinstance(assign, protocol.Assign)
    assert len(of(events.Left, job(protocol.Exited(1, 137)))) == 1


# Gangs.


def gang() -> Job:
    job = Job(ready_timeout=1.0, resize=protocol.Resize.FIXED)
    assert len(of(protocol.Start, job(protocol.Desired(slots(3))))) == 3
    return job


def test_a_gang_ends_well_when_its_last_process_has() -> None:
    job = gang()
    assert job(protocol.Exited(0, 0)) == []
    assert job(protocol.Tick()) == []
    assert job(protocol.Exited(2, 0)) == []
    assert job(protocol.Exited(1, 0)) == [events.Finished(0, "all processes have ended")]


@pytest.mark.parametrize("exit_code", [1, 137, -9, 143])
@pytest.mark.parametrize("is_early", [True, False])
def test_a_gang_ends_with_the_first_that_fails(exit_code: int, is_early: bool) -> None:
    job = gang()
    if not is_early:
        job(protocol.Exited(0, 0))
    failed, *ends = job(protocol.Exited(1, exit_code))
    assert failed.retry_after is None
    assert of(protocol.Terminate, ends) == [protocol.Terminate(worker) for worker in job.state.workers]
    for worker in list(job.state.workers):
        job(protocol.Exited(worker, 143))
    assert job.state.outcome == events.Finished(1, "rank 1 on a failed, and the job with it")


def test_a_gang_follows_no_allocation_and_is_not_waited_for() -> None:
    job = gang()
    assert job(protocol.Desired(slots(2, 2))) == []
    job(protocol.Exited(0, 0))
    assert job(protocol.Desired(slots(1))) == []
    job.now += 2 * TOLD_AFTER
    assert job(protocol.Tick()) == []


def test_a_gang_that_is_to_pause_is_ended() -> None:
    job = gang()
    assert len(of(protocol.Terminate, job(protocol.PauseWanted("paused")))) == 3
    actions = [action for worker in range(3) for action in job(protocol.Exited(worker, 143))]
    assert actions[-1] == events.Finished(1, "paused", left=True)


def test_late_messages_of_workers_that_are_gone_change_nothing() -> None:
    job = Job().grown_to(2)
    before = job.state
    for event in (protocol.Ready(9, 3), protocol.Synced(9), protocol.Done(9), protocol.Exited(9, 1)):
        assert job(event) == []
    assert job.state == before


def test_a_newcomer_that_ends_well_does_not_end_the_job() -> None:
    job = Job().grown_to(1)
    job(protocol.Desired(slots(2)))
    (failed,) = job(protocol.Exited(1, 0))
    assert (failed.retry_after, job.state.outcome) == (SUSPENSION, None)


def test_a_worker_that_hangs_after_training_does_not_hold_up_the_end() -> None:
    job = Job().grown_to(2)
    job(protocol.Done(0))
    job(protocol.Done(1))
    failed, terminate, *_ = job(protocol.Hung(1, "is silent"))
    assert isinstance(failed, events.Failed)
    assert terminate == protocol.Terminate(1, at_once=True)
    job(protocol.Exited(1, 137))
    assert job(protocol.Exited(0, 0))[-1] == events.Finished(1, "rank 1 on a was lost after training")
