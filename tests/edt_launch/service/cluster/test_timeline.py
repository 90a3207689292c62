"""Bars of who had which device, against a replay of the history second by second."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.cluster.timeline import (
    Bar,
    SizeChange,
    Slot,
    bars,
    idle,
    merged,
    resizes,
    usage,
    waiting,
)
from edt_launch.service.db.types import Held
from edt_launch.service.jobs.records import TransitionRecord
from edt_launch.service.jobs.states import State

SLOTS: list[Slot] = [("n1", "0"), ("n1", "1"), ("n2", "0")]
SINCE, UNTIL = 10, 30


def held(slots: Sequence[Slot]) -> Held:
    hosts: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for host, device in slots:
        hosts[host] += (device,)
    return tuple(hosts.items())


def change(
    time: int, job: str, slots: Sequence[Slot], before: int = 0, leaving: Sequence[Slot] = ()
) -> AllocationRecord:
    left = held([slot for slot in leaving if slot not in slots])
    return AllocationRecord(job, "ann", float(time), before, len(slots), held(slots), "", leaving=left)


histories = st.lists(
    st.builds(
        change,
        st.integers(0, 40),
        st.sampled_from(["a", "b", "c"]),
        st.lists(st.sampled_from(SLOTS), unique=True),
        st.just(0),
        st.lists(st.sampled_from(SLOTS), unique=True),
    ),
    max_size=12,
).map(lambda changes: sorted((one for one in changes if one.time <= UNTIL), key=lambda one: one.time))


def replay(changes: Sequence[AllocationRecord]) -> Counter[tuple[Slot, str]]:
    """Seconds of the window for which each job had each slot, whoever got it last."""
    seconds: Counter[tuple[Slot, str]] = Counter()
    for second in range(SINCE, UNTIL):
        holders: dict[Slot, str] = {}
        for one in changes:
            if one.time <= second:
                holders = {slot: job for slot, job in holders.items() if job != one.job}
                used = (*one.devices, *one.leaving)
                holders |= {(host, device): one.job for host, devices in used for device in devices}
        seconds.update(holders.items())
    return seconds


def check_apart(found: Sequence[Bar]) -> None:
    ordered = sorted(found, key=lambda bar: (bar.slot, bar.start))
    for before, after in pairwise(ordered):
        assert before.slot != after.slot or before.end <= after.start
    for bar in found:
        assert SINCE <= bar.start < bar.end <= UNTIL


@given(histories)
def test_bars_do_not_overlap_and_tell_all_the_time_that_was_used(changes: list[AllocationRecord]) -> None:
    found = bars(changes, SINCE, UNTIL)
    check_apart(found)
    seconds: Counter[tuple[Slot, str]] = Counter()
    for bar in found:
        seconds[bar.slot, bar.job] += int(bar.end - bar.start)
    assert seconds == replay(changes)


@given(
    histories,
    st.lists(st.tuples(st.integers(SINCE, UNTIL), st.integers(SINCE, UNTIL)).map(sorted), max_size=4),
)
def test_idle_is_what_was_free_while_somebody_waited(
    changes: list[AllocationRecord], spans: list[list[int]]
) -> None:
    transitions, queued = [], []
    for number, (start, end) in enumerate(spans):
        transitions.append(TransitionRecord(f"w{number}", start, None, State.QUEUED, ""))
        transitions.append(TransitionRecord(f"w{number}", end, State.QUEUED, State.STARTING, ""))
    transitions.sort(key=lambda one: (one.time, one.job, one.before is not None))
    exact = bars(changes, SINCE, UNTIL)
    found = idle(exact, SLOTS, waiting(transitions, queued, SINCE, UNTIL))
    check_apart([*exact, *found])
    waited = {second for start, end in spans for second in range(start, end)}
    used = Counter(
        slot
        for bar in exact
        for slot in [bar.slot]
        for second in range(int(bar.start), int(bar.end))
        if second in waited
    )
    for slot in SLOTS:
        told = sum(bar.end - bar.start for bar in found if bar.slot == slot)
        assert told == len(waited) - used[slot]


def test_a_resize_is_of_a_job_that_runs_before_and_after() -> None:
    changes = [
        change(12, "a", SLOTS[:1], 0),
        change(13, "a", SLOTS, 1),
        change(14, "a", [], 3),
        change(5, "b", SLOTS, 1),
    ]
    assert resizes(changes, SINCE, UNTIL) == [SizeChange("a", 13.0, 1, 3)]


def test_short_bars_are_several_jobs() -> None:
    found = [
        Bar(SLOTS[0], job, start, start + 1.0)
        for job, start in zip("abab", (10.0, 11.0, 12.0, 13.0), strict=True)
    ]
    assert merged(found, 2.0) == [Bar(SLOTS[0], "", 10.0, 14.0)]
    assert merged(found, 0.5) == found


def test_use_in_the_parts_of_a_window() -> None:
    found = [Bar(SLOTS[0], "a", 10, 30), Bar(SLOTS[1], "a", 14, 21), Bar(SLOTS[2], "b", 11, 12)]
    used = usage(found, lambda bar: {"a": "ann", "b": "bob"}[bar.job], SINCE, UNTIL, 4)
    assert used == {
        "ann": pytest.approx([1.2, 2.0, 1.2, 1.0]),
        "bob": pytest.approx([0.2, 0, 0, 0]),
    }
