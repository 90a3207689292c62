"""How the time of a resize is spent."""

from collections.abc import Iterable
from typing import Any

from edt_launch.phases import PHASES, Phases

CHANGED = {"event": "allocation_accepted", "time": 100.02, "changed": 100.0, "first": False}
DESIRED = {"event": "desired", "time": 100.5}
STOPPING = {"event": "stopping", "time": 103.5}
WORLD = {"event": "world", "time": 103.75}
RESUMED = {
    "event": "resumed",
    "time": 104.0,
    "phases": {"drain": 0.125, "rendezvous": 0.5, "transfer": 0.25, "first_step": 0.0625},
}


def phases_after(events: Iterable[dict[str, Any]]) -> dict[str, float]:
    """The phases in the last event, which is one of resuming."""
    found: Phases = Phases()
    event: Any = {}
    for each in events:
        found, event = found.observe(each)
    return event["phases"]


def test_all_phases_of_a_change_in_their_order() -> None:
    phases = phases_after([CHANGED, DESIRED, STOPPING, WORLD, RESUMED])
    assert tuple(phases) == PHASES
    assert tuple(phases.values()) == (0.5, 3.0, 0.25, 0.5, 0.25, 0.0625)


def test_a_lost_worker_was_not_asked_for() -> None:
    earlier = [CHANGED, DESIRED]  # a change that needed no other world
    phases = phases_after([*earlier, {"event": "failed", "time": 103.0}, WORLD, RESUMED])
    assert tuple(phases) == PHASES[2:]
    assert phases["drain"] == 0.75


def test_a_worker_that_is_lost_while_the_others_stop_changes_nothing() -> None:
    phases = phases_after([CHANGED, DESIRED, STOPPING, {"event": "failed", "time": 103.6}, WORLD, RESUMED])
    assert phases == phases_after([CHANGED, DESIRED, STOPPING, WORLD, RESUMED])


def test_the_last_change_before_the_stop_counts() -> None:
    later = [CHANGED | {"changed": 102.0}, DESIRED | {"time": 102.25}]
    phases = phases_after([CHANGED, DESIRED, *later, STOPPING, WORLD, RESUMED])
    assert (phases["detect"], phases["prepare"]) == (0.25, 1.25)


def test_a_change_in_the_middle_of_a_resize_is_the_next_one_s() -> None:
    next_change = [CHANGED | {"changed": 103.6}, DESIRED | {"time": 103.7}]
    first = [CHANGED, DESIRED, STOPPING, *next_change, WORLD, RESUMED]
    assert phases_after(first) == phases_after([CHANGED, DESIRED, STOPPING, WORLD, RESUMED])
    second = [STOPPING | {"time": 105.0}, WORLD | {"time": 105.5}, RESUMED]
    assert round(phases_after([*first, *second])["prepare"], 6) == 1.3


def test_other_events_stay_as_they_are() -> None:
    for event in (CHANGED, WORLD, {"event": "progress"}, {"event": "resumed"}):
        assert Phases().observe(event)[1] == event


def test_clocks_that_go_back_give_no_negative_times() -> None:
    assert phases_after([CHANGED | {"changed": 101.0}, DESIRED, STOPPING, WORLD, RESUMED])["detect"] == 0.0
