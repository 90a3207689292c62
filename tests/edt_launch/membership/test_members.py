"""Which slot is the same one, and how workers are let go."""

from edt_launch.membership import protocol
from edt_launch.membership.members import FORGET, MAX_SUSPENSION, SUSPENSION, after_failure, after_notice
from simulated import Job, of, slots


def test_a_newcomer_with_a_notice_is_ended() -> None:
    job = Job().grown_to(1)
    job(protocol.Desired(slots(3)))
    job(protocol.Ready(2, 0))
    assert of(protocol.Terminate, job(protocol.Leaving(1, "SIGTERM"))) == [protocol.Terminate(1)]
    assert protocol.Dismiss(2) in job(protocol.Leaving(2, "SIGTERM"))


def test_devices_make_the_slot_so_that_losing_the_first_one_keeps_the_others() -> None:
    job = Job()
    job(protocol.Desired((protocol.Slot("a", 0, "0"), protocol.Slot("a", 1, "3"))))
    job(protocol.Ready(0, 0))
    job(protocol.Ready(1, 0))
    assert job(protocol.Desired((protocol.Slot("a", 0, "3"),))) == [protocol.StopWorkers((0, 1), 2)]
    job(protocol.Ready(0, 1))
    assign, dismissed = job(protocol.Ready(1, 1))
    assert assign.assignments[0].worker == 1
    assert dismissed == protocol.Dismiss(0)


def test_failures_double_it_up_to_a_limit() -> None:
    found = None
    seconds = []
    for _ in range(20):
        found = after_failure(0.0, found)
        seconds.append(found.until)
    assert seconds[:4] == [SUSPENSION, 2 * SUSPENSION, 4 * SUSPENSION, 8 * SUSPENSION]
    assert seconds[-1] == MAX_SUSPENSION
    assert found.reason == "failed 20 times"


def test_all_is_forgotten_after_a_while() -> None:
    first = after_failure(0.0, after_notice(0.0, None, "spot"))
    assert after_failure(first.until + FORGET, first).failures == 1
    assert after_notice(first.until + FORGET, first, "spot").notices == 1


def test_failures_are_forgotten_after_a_while_and_with_the_slot() -> None:
    job = Job().grown_to(2)
    job(protocol.Exited(1, 1))
    job(protocol.Ready(0, 1))
    job.now += SUSPENSION + FORGET
    job(protocol.Tick())
    (failed, *_) = job(protocol.Exited(2, 1))
    assert failed.retry_after == SUSPENSION
    job(protocol.Desired(slots(1)))
    job(protocol.Desired(slots(2)))
    assert job.state.suspended == {}
