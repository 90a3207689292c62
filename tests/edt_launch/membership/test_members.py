"""Which slot is the same one, and how workers are let go."""

from edt_launch.membership import protocol
from edt_launch.membership.members import FORGET, MAX_SUSPENSION, SUSPENSION, after_failure
from simulated import Job, slots


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
