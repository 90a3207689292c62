"""Where slots come from without an allocation file."""

import pytest

from edt_launch.cluster.allocation import Allocation, HostSlots, parse, render
from edt_launch.cluster.devices import Machine
from edt_launch.cluster.static_hosts import allocate_here, cap, fixed, parse_hosts, read_hostfile, this_host
from edt_launch.core.errors import HostsError, UsageError


def test_reads_hosts_of_an_option():
    assert parse_hosts("h1:4, h-2.lan:2,10.0.0.3") == (
        HostSlots("h1", 4),
        HostSlots("h-2.lan", 2),
        HostSlots("10.0.0.3", 1),
    )


@pytest.mark.parametrize(
    "text, value", [("", ""), ("h1:", ""), ("h1:0", "0"), ("h1:-1", "-1"), ("h1:x", "x"), ("-h:1", "-h")]
)
def test_refuses_hosts_that_make_no_sense(text, value):
    with pytest.raises(HostsError) as raised:
        parse_hosts(text)
    assert raised.value.value == value
    assert "-H" in str(raised.value)


def test_refuses_a_host_named_twice():
    with pytest.raises(HostsError, match="each host once"):
        parse_hosts("h1:1,h1:2")


def test_reads_a_host_file(tmp_path):
    path = tmp_path / "my 'hosts'"
    path.write_text("# ours\n\nh1 slots=4\nh2:2  # new\nh3\nh4   slots=1 max_slots=2\r\n")
    assert [(host.host, host.slots) for host in read_hostfile(path)] == [
        ("h1", 4),
        ("h2", 2),
        ("h3", 1),
        ("h4", 1),
    ]


@pytest.mark.parametrize("text", ["", "# none\n", "h1 4\n", "h1:2 slots=2\n", "h1 slots=\n", "h1 slots=0\n"])
def test_an_error_in_a_host_file_names_it(tmp_path, text):
    path = tmp_path / "hosts"
    path.write_text(text)
    with pytest.raises(HostsError, match=str(path)):
        read_hostfile(path)


def test_a_host_file_that_is_not_there_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="No such file"):
        read_hostfile(tmp_path / "missing")


def test_slots_beyond_the_limit_are_not_used():
    hosts = (HostSlots("h1", 2, ("a", "b")), HostSlots("h2", 3, ("a", "b", "c")), HostSlots("h3", 1))
    assert cap(hosts, 3) == (HostSlots("h1", 2, ("a", "b")), HostSlots("h2", 1, ("a",)))
    assert cap(hosts, 9) == hosts
    assert fixed(hosts, 1) == Allocation(1, (HostSlots("h1", 1, ("a",)),))


@pytest.mark.parametrize(
    "gpus, max_np, devices",
    [((), 3, None), (("0", "1"), 2, ("0", "1")), (("0", "1", "2"), 2, ("0", "1")), (("0",), 2, None)],
)
def test_this_machine_binds_gpus_if_there_are_enough(gpus, max_np, devices):
    hosts = this_host(Machine(gpus, 8), max_np)
    assert hosts == (HostSlots("localhost", max_np, devices),)
    assert parse(render(fixed(hosts, max_np))).slots == max_np


@pytest.mark.parametrize("devices, bound", [((), None), (("0", "1", "2"), ("0", "1"))])
def test_an_allocation_of_slots_on_this_machine(tmp_path, devices, bound):
    path = tmp_path / "allocation"
    allocate_here(path, 3, 2, devices)
    assert parse(path.read_text()) == Allocation(3, (HostSlots("localhost", 2, bound),))
