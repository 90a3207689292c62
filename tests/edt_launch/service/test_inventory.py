from dataclasses import replace

from edt_launch.cluster.allocation import HostSlots
from edt_launch.service.bus import Bus, Topic
from edt_launch.service.database.records import HostRecord
from edt_launch.service.database.store import Store
from edt_launch.service.inventory import Inventory, changes
from simulated_hosts import SimulatedHosts

A, B = HostSlots("a", 2, ("0", "1")), HostSlots("b", 1)
KNOWN = HostRecord("a", ("0", "1"), source="test", changed=1.0)


def test_new_hosts_are_up() -> None:
    assert changes([], [A], "test", 5.0) == [HostRecord("a", ("0", "1"), source="test", changed=5.0)]


def test_what_is_as_it_was_does_not_change() -> None:
    assert changes([KNOWN], [A], "test", 5.0) == []


def test_devices_come_and_go() -> None:
    found = HostSlots("a", 1, ("0",))
    assert changes([KNOWN], [found], "test", 5.0) == [replace(KNOWN, devices=("0",), changed=5.0)]


def test_a_host_that_is_dropped_is_down_until_it_is_listed_again() -> None:
    (down,) = changes([KNOWN], [], "test", 5.0)
    assert (down.state, down.why) == ("down", "its source does not list it any more")
    assert changes([down], [], "test", 6.0) == []
    (up,) = changes([down], [A], "test", 7.0)
    assert (up.state, up.why) == ("up", "")


def test_a_drained_host_stays_so_when_it_comes_back() -> None:
    draining = replace(KNOWN, is_draining=True, reason="drained by admin")
    assert changes([draining], [A], "test", 5.0) == []
    (down,) = changes([draining], [], "test", 6.0)
    (back,) = changes([down], [A], "test", 7.0)
    assert (back.state, back.why) == ("draining", "drained by admin")


def test_a_host_that_was_undrained_while_it_was_down_comes_up(store: Store) -> None:
    source = SimulatedHosts(A, B)
    inventory = Inventory(source, store, Bus(), lambda: 9.0)
    inventory.refresh()
    store.hosts.drain("b", True, "drained by admin", 9.0)
    source.found = (A,)
    inventory.refresh()
    store.hosts.drain("b", False, "", 9.0)
    source.found = (A, B)
    inventory.refresh()
    assert [(host.state, host.why) for host in store.hosts.all()] == [("up", ""), ("up", "")]


def test_changes_are_written_down_and_told(store: Store) -> None:
    source, bus = SimulatedHosts(A, B), Bus()
    inventory = Inventory(source, store, bus, lambda: 9.0)
    inventory.refresh()
    assert [(host.name, host.state) for host in store.hosts.all()] == [("a", "up"), ("b", "up")]
    assert bus.version(Topic.HOSTS) == 1
    inventory.refresh()
    assert bus.version(Topic.HOSTS) == 1
    source.trouble = "half a file"
    inventory.refresh()
    assert [host.state for host in store.hosts.all()] == ["up", "up"]
    source.found, source.trouble = (B,), ""
    inventory.refresh()
    assert [host.state for host in store.hosts.all()] == ["down", "up"]
    assert bus.version(Topic.HOSTS) == 2
