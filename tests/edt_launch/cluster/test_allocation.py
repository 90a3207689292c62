"""The allocation file: what is read, what is refused and why, and how it is written."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.cluster.allocation import Allocation, HostSlots, parse, render
from edt_launch.core.errors import AllocationError
from edt_launch.core.files.atomic import write_atomically

HEADER = "# edt allocation v1 generation=17\n"
names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,20}", fullmatch=True)
devices = st.from_regex(r"[A-Za-z0-9_.:/-]{1,20}", fullmatch=True)


@st.composite
def host_slots(draw, host):
    if draw(st.booleans()):
        return HostSlots(host, draw(st.integers(0, 10**6)))
    listed = tuple(draw(st.lists(devices, unique=True, max_size=5)))
    return HostSlots(host, len(listed), listed)


@st.composite
def allocations(draw):
    hosts = draw(st.lists(names, unique=True, min_size=1, max_size=6))
    slots = tuple(draw(host_slots(host)) for host in hosts)
    allocation = Allocation(draw(st.integers(0, 10**15)), slots, draw(st.booleans()))
    if allocation.slots == 0:
        return Allocation(1, (HostSlots(hosts[0], 1),))
    return allocation


@given(allocations())
def test_reads_what_it_writes(allocation):
    assert parse(render(allocation)) == allocation


@given(allocations(), st.data())
def test_a_part_of_a_file_is_refused_or_complete(allocation, data):
    text = render(allocation)
    part = text[: data.draw(st.integers(0, len(text) - 1))]
    try:
        found = parse(part)
    except AllocationError:
        return
    assert part.endswith("\n")
    assert found.hosts == allocation.hosts[: len(found.hosts)]


def test_reads_the_form_of_the_manual():
    text = HEADER + "# by hand\n\nnode1:2 devices=0,3\nnode2:1\t devices=GPU-5f:a/b  \r\nnode3:0\n"
    hosts = (HostSlots("node1", 2, ("0", "3")), HostSlots("node2", 1, ("GPU-5f:a/b",)), HostSlots("node3", 0))
    assert parse(text) == Allocation(17, hosts)
    assert parse(text).slots == 3


@pytest.mark.parametrize(
    "text, line, value, expected",
    [
        ("", None, "", "first line"),
        ("# edt allocation v2 generation=1\nnode1:2\n", 1, "# edt allocation v2 generation=1", "v1"),
        (HEADER, None, HEADER.strip(), "host:slots"),
        (HEADER + "node1:2", None, "node1:2", "half written"),
        (HEADER + "node1:0\nnode2:0\n", None, "0", "at least one slot"),
        (HEADER + "node1:\N{ARABIC-INDIC DIGIT TWO}\n", 2, "\N{ARABIC-INDIC DIGIT TWO}", "whole number"),
        (HEADER + "node1:1\nnode1:2\n", 3, "node1", "each host once"),
        (HEADER + "node1:2 devices=0\n", 2, "0", "each of the 2 slots, not 1"),
        (HEADER + "node1:1 devices=$(reboot)\n", 2, "$(reboot)", "device name"),
        (HEADER + "-oProxyCommand=x:1\n", 2, "-oProxyCommand=x", "host name"),
    ],
)
def test_an_error_names_line_value_and_what_is_expected(text, line, value, expected):
    with pytest.raises(AllocationError) as raised:
        parse(text)
    assert (raised.value.line, raised.value.value) == (line, value)
    assert expected in raised.value.expected
    assert repr(value) in str(raised.value)


def test_replaces_a_file_in_one_go(tmp_path):
    path = tmp_path / 'it\'s an "allocation"'
    write_atomically(path, "first\n")
    with path.open() as open_before:
        write_atomically(path, "second\n")
        assert open_before.read() == "first\n"
    assert path.read_text() == "second\n"
    assert os.listdir(tmp_path) == [path.name]
