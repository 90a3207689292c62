"""Hosts, cut and spread to what a job can use."""

from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import cap


def test_slots_beyond_the_limit_are_not_used() -> None:
    hosts = (HostSlots("h1", 2, ("a", "b")), HostSlots("h2", 3, ("a", "b", "c")), HostSlots("h3", 1))
    assert cap(hosts, 3) == (HostSlots("h1", 2, ("a", "b")), HostSlots("h2", 1, ("a",)))
    assert cap(hosts, 9) == hosts
