"""Which slot is the same one, and how workers are let go."""

from edt_launch.membership.protocol import Assign, Desired, Dismiss, Leaving, Ready, Slot, Stop, Terminate
from simulated import Job, of, slots


def test_a_newcomer_with_a_notice_is_ended() -> None:
    job = Job().grown_to(1)
    job(Desired(slots(3)))
    job(Ready(2, 0))
    assert of(Terminate, job(Leaving(1, "SIGTERM"))) == [Terminate(1)]
    assert Dismiss(2) in job(Leaving(2, "SIGTERM"))


def test_devices_make_the_slot_so_that_losing_the_first_one_keeps_the_others() -> None:
    job = Job()
    job(Desired((Slot("a", 0, "0"), Slot("a", 1, "3"))))
    job(Ready(0, 0))
    job(Ready(1, 0))
    assert job(Desired((Slot("a", 0, "3"),))) == [Stop((0, 1), 2)]
    job(Ready(0, 1))
    assign, dismissed = job(Ready(1, 1))
    assert isinstance(assign, Assign)
    assert assign.assignments[0].worker == 1
    assert dismissed == Dismiss(0)
