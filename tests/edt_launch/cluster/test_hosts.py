"""Hosts, cut and spread to what a job can use."""

import pytest

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import cap, spread, unbound, without_devices


def test_slots_beyond_the_limit_are_not_used() -> None:
    hosts = (HostSlots("h1", 2, ("a", "b")), HostSlots("h2", 3, ("a", "b", "c")), HostSlots("h3", 1))
    assert cap(hosts, 3) == (HostSlots("h1", 2, ("a", "b")), HostSlots("h2", 1, ("a",)))
    assert cap(hosts, 9) == hosts


@pytest.mark.parametrize(
    "gpus, count, devices",
    [(None, 3, None), (("0", "1"), 2, ("0", "1")), (("0", "1", "2"), 2, ("0", "1")), (("0",), 2, None)],
)
def test_gpus_are_bound_if_there_are_enough(
    gpus: tuple[str, ...] | None, count: int, devices: tuple[str, ...] | None
) -> None:
    assert spread(HostSlots("h", len(gpus or "x"), gpus), count) == HostSlots("h", count, devices)


def test_slots_that_are_no_devices_are_bound_to_none() -> None:
    assert without_devices("h", 2) == HostSlots("h", 2, ("cpu0", "cpu1"))
    assert unbound(without_devices("h", 2)) == HostSlots("h", 2)
    assert unbound(HostSlots("h", 2)) == HostSlots("h", 2)
    assert unbound(HostSlots("h", 1, ("0",))) == HostSlots("h", 1, ("0",))
