from dataclasses import dataclass, replace
from typing import ClassVar

from edt_launch.service.bus import Bus, Topic
from edt_launch.service.database.records import HostRecord
from edt_launch.service.database.store import Store
from edt_launch.service.devices.sources import DevicesError, HostDevices
from edt_launch.service.inventory import GONE, Inventory, changes

A, B = HostDevices("a", ("0", "1")), HostDevices("b", ("0",))
KNOWN = HostRecord("a", ("0", "1"), source="test", changed=1.0)


def test_new_hosts_are_up() -> None:
    assert changes([], [A], "test", 5.0) == [HostRecord("a", ("0", "1"), source="test", changed=5.0)]


def test_what_is_as_it_was_does_not_change() -> None:
    assert changes([KNOWN], [A], "test", 5.0) == []


def test_devices_come_and_go() -> None:
    found = HostDevices("a", ("0",))
    assert changes([KNOWN], [found], "test", 5.0) == [replace(KNOWN, devices=("0",), changed=5.0)]


def test_a_host_that_is_dropped_is_down_until_it_is_listed_again() -> None:
    (down,) = changes([KNOWN], [], "test", 5.0)
    assert (down.state, down.reason) == ("down", GONE)
    assert changes([down], [], "test", 6.0) == []
    (up,) = changes([down], [A], "test", 7.0)
    assert (up.state, up.reason) == ("up", "")


def test_a_host_that_others_have_found_down_or_drained_stays_so() -> None:
    down = replace(KNOWN, is_up=False, reason="does not answer")
    draining = replace(KNOWN, is_draining=True, reason="drained by admin")
    assert changes([down], [A], "test", 5.0) == []
    assert changes([draining], [A], "test", 5.0) == []


@dataclass
class Listed:
    name: ClassVar[str] = "test"
    found: tuple[HostDevices, ...] | None = ()

    @classmethod
    def detect(cls, around: object) -> "Listed":
        return cls()

    def hosts(self) -> tuple[HostDevices, ...]:
        if self.found is None:
            raise DevicesError("half a file")
        return self.found


def test_changes_are_written_down_and_told(store: Store) -> None:
    source, bus = Listed((A, B)), Bus()
    inventory = Inventory(source, store, bus, lambda: 9.0)
    inventory.refresh()
    assert [(host.name, host.state) for host in store.hosts.all()] == [("a", "up"), ("b", "up")]
    assert bus.version(Topic.HOSTS) == 1
    inventory.refresh()
    assert bus.version(Topic.HOSTS) == 1
    source.found = None
    inventory.refresh()
    assert [host.state for host in store.hosts.all()] == ["up", "up"]
    source.found = (B,)
    inventory.refresh()
    assert [host.state for host in store.hosts.all()] == ["down", "up"]
    assert bus.version(Topic.HOSTS) == 2
