"""How the time of a resize is spent."""

from collections.abc import Iterable, Mapping

from edt_launch.core.history.events import (
    AllocatedHost,
    AllocationAccepted,
    Desired,
    Event,
    Resumed,
    Stopping,
    World,
)
from edt_launch.launcher.view.phases import PHASES, Phases


def allocation(slots: int, changed: float | None = None, host: str = "a") -> AllocationAccepted:
    hosts = (AllocatedHost(host, slots),)
    return AllocationAccepted(1, slots, hosts, changed is None, changed, time=100.02)


FIRST = allocation(2)
OLD_WORLD = World(1, 2, None, {0: 0, 1: 1}, time=90.0)
CHANGED = allocation(3, 100.0)
DESIRED = Desired(3, time=100.5)
STOPPING = Stopping(2, time=103.5)
WORLD = World(2, 3, 2, {0: 0, 1: 1, 2: 2}, time=103.75)
MEASURED = {"drain": 0.125, "rendezvous": 0.5, "transfer": 0.25, "first_step": 0.0625}
RESUMED = Resumed(2, 2, 3, 1.0, MEASURED, time=104.0)


def phases_after(events: Iterable[Event]) -> Mapping[str, float]:
    """The phases in the last event, which is one of resuming, in a job that has begun with two workers."""
    found: Phases = Phases()
    event: Event | None = None
    for each in (FIRST, OLD_WORLD, *events):
        found, event = found.observe(each)
    assert isinstance(event, Resumed)
    return event.phases


def test_all_phases_of_a_change_in_their_order() -> None:
    phases = phases_after([CHANGED, DESIRED, STOPPING, WORLD, RESUMED])
    assert tuple(phases) == PHASES
    assert tuple(phases.values()) == (0.5, 3.0, 0.25, 0.5, 0.25, 0.0625)
