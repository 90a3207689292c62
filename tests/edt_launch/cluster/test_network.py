"""Which hosts are this machine, and the choice of the interface."""

import socket

import pytest

from edt_launch.cluster.network import HostChecker, interfaces, public_name, resolve, source_address
from edt_launch.core.errors import StartError

KNOWN = {"lo": ("127.0.0.1",), "eth0": ("10.0.0.5",), "ib0": ("192.168.7.5", "192.168.8.5")}
ADDRESSES = {"localhost": "127.0.0.1", "me": "10.0.0.5", "node2": "192.168.8.9", "far": "8.8.8.8"}


def route(address):
    return "192.168.8.5" if address.startswith("192.168.8.") else None


def choose(named, *hosts):
    return HostChecker(ADDRESSES.get, known=KNOWN, route=route).choose(named, hosts)


def test_loopback_while_every_host_is_this_machine():
    assert choose(None, "localhost", "me") == "lo"


def test_the_interface_that_leads_to_the_first_remote_host():
    assert choose(None, "localhost", "node2", "far") == "ib0"


def test_says_when_there_is_no_way():
    with pytest.raises(StartError, match=r"far \(8\.8\.8\.8\).*--network-interface"):
        choose(None, "far")


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
    checker = HostChecker(ADDRESSES.get, known=KNOWN)
    checker.interface = interface
    found = checker(host)
    assert found is None if problem is None else problem in found


def test_of_this_very_machine():
    known = interfaces()
    loopback = HostChecker().choose(None, ["localhost"])
    assert "127.0.0.1" in known[loopback]
    assert source_address("127.0.0.1") == "127.0.0.1"
    assert resolve("127.0.0.1") == "127.0.0.1"
    assert resolve("no-such-host.invalid") is None
    assert resolve("x" * 300) is None


def test_this_machines_own_name_needs_no_resolver(monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "no-such-host.invalid")
    assert resolve("no-such-host.invalid") == "127.0.0.1"
    assert public_name() in {address for addresses in interfaces().values() for address in addresses}
