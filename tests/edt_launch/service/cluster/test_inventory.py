from dataclasses import replace

from edt_launch.cluster.allocation import HostSlots
from edt_launch.service.bus import Bus, Topic
from edt_launch.service.cluster.inventory import Inventory, changes
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.records import JobRecord
from simulated_hosts import SimulatedHosts

A, B = HostSlots("a", 2, ("0", "1")), HostSlots("b", 1)
KNOWN = HostRecord("a", ("0", "1"), source="test", changed=1.0)


def test_a_host_that_is_dropped_is_down_until_it_is_listed_again() -> None:
    (down,) = changes([KNOWN], [], "test", 5.0)
    assert (down.state, down.why) == ("down", "its source does not list it any more")
    assert changes([down], [], "test", 6.0) == []
    (up,) = changes([down], [A], "test", 7.0)
    assert (up.state, up.why) == ("up", "")


def test_a_host_that_is_listed_and_lost_is_down_with_the_reason() -> None:
    (down,) = changes([KNOWN], [A], "test", 5.0, {"a": "it cannot be reached: x"})
    assert (down.state, down.why, down.changed) == ("down", "it cannot be reached: x", 5.0)
    assert changes([down], [A], "test", 6.0, {"a": "it cannot be reached: x"}) == []
    (up,) = changes([down], [A], "test", 7.0)
    assert (up.state, up.why) == ("up", "")
    (dropped,) = changes([down], [], "test", 7.0)
    assert dropped.why == "its source does not list it any more"


def test_changes_are_written_down_and_told(store: Store) -> None:
    source, bus = SimulatedHosts(A, B), Bus()
    inventory = Inventory(source, store, bus, lambda: 9.0)
    inventory.refresh()
    assert [(host.name, host.state) for host in store.hosts.all()] == [("a", "up"), ("b", "up")]
    assert bus.version(Topic.HOSTS) == 1
    inventory.refresh()
    assert bus.version(Topic.HOSTS) == 1
    source.found = (A, replace(B, agent="/opt/edt"))
    inventory.refresh()
    assert bus.version(Topic.HOSTS) == 2  # jobs are to hear of it
    source.found = (A, HostSlots("b\nc:4", 1), replace(B, agent="/opt/edt"))
    inventory.refresh()
    assert len(store.hosts.all()) == 2
    source.trouble = "half a file"
    inventory.refresh()
    assert [host.state for host in store.hosts.all()] == ["up", "up"]
    source.found, source.trouble = (B,), ""
    inventory.refresh()
    assert [host.state for host in store.hosts.all()] == ["down", "up"]
    assert bus.version(Topic.HOSTS) == 3


def test_the_source_is_told_what_jobs_use_and_could_use(store: Store) -> None:
    source, bus = SimulatedHosts(A, B), Bus()
    inventory = Inventory(source, store, bus, lambda: 9.0)
    job = JobRecord(
        "jaaaaaaaa", "ann", ("x",), 1, 4, 0.0, held=(("a", ("0", "1")),), leaving=(("b", ("0",)),)
    )
    store.jobs.add(job)
    bus.notify(Topic.JOBS)
    inventory.demand = 2
    inventory.refresh()
    store.jobs.record({job.id: {"leaving": ()}})
    inventory.refresh()
    bus.notify(Topic.JOBS)
    inventory.demand = 0
    inventory.refresh()
    inventory.close()
    assert source.told == [
        *(("reserve", "a", "0", "1"), ("reserve", "b", "0"), ("demand", 2)),
        *(("release", "b", "0"), ("demand", 0), ("close",)),
    ]
