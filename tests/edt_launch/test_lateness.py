"""Newcomers that take long: for how long they are waited for, told of, and borne with."""

from edt_launch.protocol import AtDoor, Desired, Stop, Tick
from simulated import Job, slots


def test_slow_newcomers_hold_up_the_others_only_until_their_deadline() -> None:
    job = Job().grown_to(1)
    job(Desired(slots(3)))
    assert job(AtDoor(1, 0)) == []
    job.now += job.state.limits.start_timeout + 1
    assert job(Tick()) == [Stop((0,), 2)]
