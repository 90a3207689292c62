"""How the time of a resize is spent."""

from collections.abc import Iterable
from typing import Any

from edt_launch.launcher.view.phases import PHASES, Phases


def allocation(slots: int, changed: float | None = None) -> dict[str, Any]:
    hosts = [{"name": "a", "slots": slots, "devices": None}]
    times = {"time": 100.02, "changed": changed}
    return {"event": "allocation_accepted", **times, "hosts": hosts, "first": changed is None}


FIRST = allocation(2)
OLD_WORLD = {"event": "world", "time": 90.0, "ranks": {"0": 0, "1": 1}}
CHANGED = allocation(3, 100.0)
DESIRED = {"event": "desired", "time": 100.5}
STOPPING = {"event": "stopping", "time": 103.5}
WORLD = {"event": "world", "time": 103.75, "ranks": {"0": 0, "1": 1, "2": 2}}
RESUMED = {
    "event": "resumed",
    "time": 104.0,
    "phases": {"drain": 0.125, "rendezvous": 0.5, "transfer": 0.25, "first_step": 0.0625},
}


def phases_after(events: Iterable[dict[str, Any]]) -> dict[str, float]:
    """The phases in the last event, which is one of resuming, in a job that has begun with two workers."""
    found: Phases = Phases()
    event: Any = {}
    for each in (FIRST, OLD_WORLD, *events):
        found, event = found.observe(each)
    return event["phases"]


def test_all_phases_of_a_change_in_their_order() -> None:
    phases = phases_after([CHANGED, DESIRED, STOPPING, WORLD, RESUMED])
    assert tuple(phases) == PHASES
    assert tuple(phases.values()) == (0.5, 3.0, 0.25, 0.5, 0.25, 0.0625)


def test_a_lost_worker_was_not_asked_for() -> None:
    earlier = [CHANGED, DESIRED]  # a change that needed no other world
    phases = phases_after([*earlier, {"event": "failed", "time": 103.0, "worker": 1}, WORLD, RESUMED])
    assert tuple(phases) == PHASES[2:]
    assert phases["drain"] == 0.75


def test_a_worker_that_is_lost_while_the_others_stop_changes_nothing() -> None:
    failed = {"event": "failed", "time": 103.6, "worker": 1}
    phases = phases_after([CHANGED, DESIRED, STOPPING, failed, WORLD, RESUMED])
    assert phases == phases_after([CHANGED, DESIRED, STOPPING, WORLD, RESUMED])


def test_a_newcomer_that_fails_stops_nobody() -> None:
    newcomer = {"event": "failed", "time": 10.0, "worker": 2}
    member = {"event": "failed", "time": 103.5, "worker": 1}
    assert phases_after([newcomer, member, WORLD, RESUMED])["drain"] == 0.25


def test_a_change_that_is_taken_back_is_forgotten() -> None:
    back = [allocation(2, 101.0), DESIRED | {"time": 101.5}]
    later = [STOPPING | {"time": 1103.5}, WORLD | {"time": 1103.75}, RESUMED]
    phases = phases_after([CHANGED, DESIRED, *back, *later])
    assert tuple(phases) == PHASES[2:]
    phases = phases_after(
        [CHANGED, DESIRED, *back, allocation(3, 1000.0), DESIRED | {"time": 1000.5}, *later]
    )
    assert (phases["detect"], phases["prepare"]) == (0.5, 103.0)


def test_other_hosts_of_the_same_number_are_a_change() -> None:
    moved = allocation(2, 100.0)
    moved["hosts"][0]["name"] = "b"
    assert phases_after([moved, DESIRED, STOPPING, WORLD, RESUMED])["prepare"] == 3.0


def test_a_worker_that_asks_to_leave_was_not_asked_for() -> None:
    """What the allocation shows meanwhile is done later."""
    leaving = {"event": "leaving", "time": 103.0, "worker": 1}
    first = [CHANGED, DESIRED, leaving, STOPPING, WORLD, RESUMED]
    assert tuple(phases_after(first)) == PHASES[2:]
    second = [STOPPING | {"time": 105.5}, WORLD | {"time": 105.75}, RESUMED]
    assert phases_after([*first, *second])["prepare"] == 5.0
    newcomer = leaving | {"worker": 2}
    assert phases_after([CHANGED, DESIRED, newcomer, STOPPING, WORLD, RESUMED])["prepare"] == 3.0


def test_the_last_change_before_the_stop_counts() -> None:
    later = [allocation(4, 102.0), DESIRED | {"time": 102.25}]
    phases = phases_after([CHANGED, DESIRED, *later, STOPPING, WORLD, RESUMED])
    assert (phases["detect"], phases["prepare"]) == (0.25, 1.25)


def test_a_change_in_the_middle_of_a_resize_is_the_next_one_s() -> None:
    next_change = [allocation(4, 103.6), DESIRED | {"time": 103.7}]
    first = [CHANGED, DESIRED, STOPPING, *next_change, WORLD, RESUMED]
    assert phases_after(first) == phases_after([CHANGED, DESIRED, STOPPING, WORLD, RESUMED])
    second = [STOPPING | {"time": 105.0}, WORLD | {"time": 105.5}, RESUMED]
    assert round(phases_after([*first, *second])["prepare"], 6) == 1.3


def test_other_events_stay_as_they_are() -> None:
    for event in (CHANGED, WORLD, {"event": "progress"}, {"event": "resumed"}):
        assert Phases().observe(event)[1] == event


def test_clocks_that_go_back_give_no_negative_times() -> None:
    assert phases_after([allocation(3, 101.0), DESIRED, STOPPING, WORLD, RESUMED])["detect"] == 0.0
