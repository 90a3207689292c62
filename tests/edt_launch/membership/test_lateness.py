"""Newcomers that take long: for how long they are waited for, told of, and borne with."""

import pytest

from edt_launch.core.history import events
from edt_launch.membership.intake import KILLED
from edt_launch.membership.lateness import GIVE_UP, GIVE_UP_FACTOR, HOLD_UP, HOLD_UP_FACTOR, TOLD_AFTER
from edt_launch.membership.members import START_FAILURES, SUSPENSION
from edt_launch.membership.protocol import Desired, Exited, Ready, Slot, StopWorkers, Terminate, Tick
from simulated import Job, of, slots


def waiting_job(took: float = 0.0, ready_timeout: float | None = None) -> Job:
    """One worker, which took so long to the rendezvous, trains; of two newcomers one is ready."""
    job = Job(ready_timeout=ready_timeout)
    job(Desired(slots(1)))
    job.now += took
    job(Ready(0, 0))
    job(Desired(slots(3)))
    job.now += min(took, 1.0)
    job(Ready(1, 0))
    job.now -= min(took, 1.0)
    return job


@pytest.mark.parametrize("took", [0.0, 100.0])
def test_slow_newcomers_hold_up_the_others_only_for_a_while(took: float) -> None:
    job = waiting_job(took)
    hold_up = max(HOLD_UP, HOLD_UP_FACTOR * took)
    job.now += hold_up - 1
    assert of(StopWorkers, job(Tick())) == []
    job.now += 1
    assert of(StopWorkers, job(Tick())) == [StopWorkers((0,), 2)]
    job(Ready(0, 5))
    assert [w.id for w in job.state.world] == [0, 1]
    job.now += hold_up
    assert job(Ready(2, 0)) == [StopWorkers((0, 1), 3)], "it comes in when it is ready"
    assert job.state.longest_start == 2 * hold_up


@pytest.mark.parametrize("took", [0.0, 100.0])
def test_one_that_takes_far_too_long_is_ended_and_its_slot_tried_again(took: float) -> None:
    job = waiting_job(took)
    limit = max(GIVE_UP, GIVE_UP_FACTOR * took)
    job.now += limit - 1
    assert of(events.Failed, job(Tick())) == []
    job.now += 1
    failed, terminate = job(Tick())
    assert (failed.slot, failed.exit_code, failed.retry_after) == (2, KILLED, SUSPENSION)
    assert f"has not come to the elastic function within {limit:.0f} s" in failed.reason
    assert terminate == Terminate(2, at_once=True)
    assert job(Tick()) == []
    assert len(of(events.Left, job(Exited(2, KILLED)))) == 1
    job.now += SUSPENSION
    (start,) = job(Tick())
    assert start.worker.slot == Slot("a", 2)


def test_who_is_late_is_told_once_with_what_comes_then() -> None:
    job = waiting_job(took=2.0)
    job.now += TOLD_AFTER - 1
    assert job(Tick()) == []
    job.now += 1
    (late,) = job(Tick())
    assert [w.slot for w in late.workers] == [2]
    assert (late.seconds, late.longest, late.waited, late.limit) == (TOLD_AFTER, 2.0, HOLD_UP, GIVE_UP)
    job.now += 1
    assert job(Tick()) == []


def test_the_first_workers_have_all_the_time_they_need_and_a_plain_program_is_told_nothing() -> None:
    job = Job(min_size=2)
    job(Desired(slots(2)))
    job.now += 36000.0
    assert job(Tick()) == []
    job(Ready(0, 0))
    assert len(job(Ready(1, 0))) == 1


def test_a_limit_of_the_user_replaces_what_is_learned() -> None:
    job = waiting_job(took=2.0, ready_timeout=40.0)
    job.now += 40.0
    assert [type(action) for action in job(Tick())] == [events.Failed, Terminate, StopWorkers]
    job = waiting_job(took=2.0, ready_timeout=0.0)
    job.now += 36000.0
    late, stop = job(Tick())
    assert (late.waited, late.limit) == (HOLD_UP, None)
    assert stop == StopWorkers((0,), 2), "but others do not wait for so long"


def test_a_first_start_that_is_too_slow_for_the_user_ends_the_job_after_a_few_tries() -> None:
    job = Job(ready_timeout=400.0)
    job(Desired(slots(1)))
    job.now += TOLD_AFTER
    (late,) = job(Tick())
    assert isinstance(late, events.SlowStart)
    assert (late.longest, late.waited, late.limit) == (None, 400.0, 400.0)
    failures = 0
    while job.state.outcome is None:
        job.now += 10.0
        actions = job(Tick())
        failures += len(of(events.Failed, actions))
        for terminated in of(Terminate, actions):
            job(Exited(terminated.worker, KILLED))
    assert failures == START_FAILURES
    assert job.state.outcome.reason == "rank 0 on a was lost"
