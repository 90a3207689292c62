"""Which hosts are this machine, and where workers on others reach it."""

import pytest

from edt_launch.cluster.network import HostChecker

KNOWN = {"lo": ("127.0.0.1",), "eth0": ("10.0.0.5",), "ib0": ("192.168.7.5", "192.168.8.5")}
ADDRESSES = {"localhost": "127.0.0.1", "me": "10.0.0.5", "node2": "192.168.8.9", "far": "8.8.8.8"}


def route(address):
    return "192.168.8.5" if address.startswith("192.168.8.") else None


def checker(interface=None):
    return HostChecker(ADDRESSES.get, known=KNOWN, route=route, interface=interface)


@pytest.mark.parametrize(
    "named, hosts, address, interface",
    [
        (None, ["localhost", "me"], "127.0.0.1", "lo"),  # every host is this machine
        (None, ["localhost", "node2", "far"], "192.168.8.5", "ib0"),  # on the way to the first that is not
        ("eth0", ["localhost"], "10.0.0.5", "eth0"),
    ],
)
def test_workers_reach_this_machine_on_the_interface_that_leads_to_them(named, hosts, address, interface):
    assert checker(named).address_towards(hosts) == address
    assert checker(named).interface_towards(hosts) == interface


@pytest.mark.parametrize(
    "interface, host, problem",
    [
        ("lo", "me", None),
        ("lo", "node2", "--network-interface"),
        ("ib0", "node2", None),
        (None, "node2", None),
        ("ib0", "nowhere", "unknown host 'nowhere'"),
    ],
)
def test_says_what_is_wrong_with_a_host(interface, host, problem):
    found = checker(interface)(host)
    assert found is None if problem is None else problem in found


def test_a_host_that_was_not_found_is_looked_up_again_later_or_at_once_if_asked_to():
    known: dict[str, str] = {}
    times = iter(range(100))
    one = HostChecker(known.get, clock=lambda: float(next(times)), known=KNOWN, route=route)
    assert one("node2") is not None
    known["node2"] = "192.168.8.9"
    assert one("node2") is not None
    assert one.check_anew("node2") is None
    assert one("node2") is None


def test_a_user_of_a_host_is_no_part_of_its_address_and_makes_it_another_machine():
    one = HostChecker({"h1": "127.0.0.1"}.get)
    assert one.address("ann@h1") == "127.0.0.1"
    assert [one.is_remote("h1"), one.is_remote("ann@h1")] == [False, True]
