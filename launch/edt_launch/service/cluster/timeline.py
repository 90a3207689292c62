"""Who had which device when: bars over a window of time, from the history of allocations. Pure functions.

A bar ends when the job's worker is known to have left the device, or another job has it.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.jobs.records import TransitionRecord
from edt_launch.service.jobs.states import State

Slot = tuple[str, str]
"""A host, and one of its devices."""

Span = tuple[float, float]
"""From when, and until when."""

SEVERAL = ""
"""Stands for the jobs of a bar that is made of bars too short to be seen."""


class Bar(NamedTuple):
    """A job had a device; times are unix seconds, `reason` says why it was given that."""

    slot: Slot
    job: str
    start: float
    end: float
    reason: str = ""


@dataclass(frozen=True)
class SizeChange:
    """A job was given another number of workers while it ran."""

    job: str
    time: float
    before: int
    after: int


def bars(changes: Iterable[AllocationRecord], since: float, until: float) -> list[Bar]:
    """The bars of a window, in the order of their ends.

    `changes` are in the order in which they were made; of each job that had devices when the window begins,
    they have the last one before.
    """
    found: list[Bar] = []
    holders: dict[Slot, AllocationRecord] = {}

    def close(slot: Slot, at: float) -> None:
        given = holders.pop(slot)
        start, end = max(given.time, since), min(at, until)
        if start < end:
            found.append(Bar(slot, given.job, start, end, given.reason))

    held: defaultdict[str, set[Slot]] = defaultdict(set)
    for change in changes:
        held_on = (*change.devices, *change.leaving)
        after = {(host, device) for host, devices in held_on for device in devices}
        for slot in held[change.job] - after:
            close(slot, change.time)
        for slot in after - held[change.job]:
            if slot in holders:
                held[holders[slot].job].discard(slot)
                close(slot, change.time)
            holders[slot] = change
        held[change.job] = after
    for slot in list(holders):
        close(slot, until)
    return found


def merged(found: Iterable[Bar], shortest: float) -> list[Bar]:
    """Bars by slot and time; those of less than `shortest` seconds are one with such ones that they touch."""
    shown: list[Bar] = []
    for bar in sorted(found, key=lambda bar: (bar.slot, bar.start)):
        last = shown[-1] if shown else None
        touches = last is not None and last.slot == bar.slot and bar.start - last.end < shortest
        if last is None or not touches:
            shown.append(bar)
        elif last.job == bar.job and last.end == bar.start:
            shown[-1] = last._replace(end=bar.end)
        elif bar.end - bar.start < shortest and (last.job == SEVERAL or last.end - last.start < shortest):
            shown[-1] = Bar(bar.slot, SEVERAL, last.start, bar.end)
        else:
            shown.append(bar)
    return shown


def usage(
    found: Iterable[Bar], whose: Callable[[Bar], str], since: float, until: float, points: int
) -> dict[str, list[float]]:
    """How many devices were used on average in each of so many equal parts of a window.

    They are counted by what `whose` says of a bar: its owner, or its host.
    """
    part = (until - since) / points
    differences: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * (points + 1))
    partly: defaultdict[str, list[float]] = defaultdict(lambda: [0.0] * points)
    for bar in found:
        start, end = (bar.start - since) / part, (bar.end - since) / part
        first, last = min(int(start), points - 1), min(int(end), points - 1)
        owner = whose(bar)
        if first == last:
            partly[owner][first] += end - start
            continue
        partly[owner][first] += first + 1 - start
        partly[owner][last] += end - last
        differences[owner][first + 1] += 1
        differences[owner][last] -= 1
    return {
        owner: [whole + rest for whole, rest in zip(accumulate(differences[owner]), parts, strict=False)]
        for owner, parts in partly.items()
    }


def bands(
    found: Iterable[Bar], hosts: Sequence[str], since: float, until: float, points: int
) -> list[tuple[int, float, float, float]]:
    """How many devices of each host were used, in equal parts of a window: host, from, to, devices.

    The host is an index. Parts that follow each other and are alike are one; those without use are left out.
    """
    part = (until - since) / points
    used = usage(found, lambda bar: bar.slot[0], since, until, points)
    found_bands: list[tuple[int, float, float, float]] = []
    for row, host in enumerate(hosts):
        start = 0
        parts = [round(one, 2) for one in used.get(host, ())]
        for at in range(1, len(parts) + 1):
            if at == len(parts) or parts[at] != parts[start]:
                if parts[start]:
                    found_bands.append((row, since + start * part, since + at * part, parts[start]))
                start = at
    return found_bands


def resizes(changes: Iterable[AllocationRecord], since: float, until: float) -> list[SizeChange]:
    """The changes of size, of jobs that had devices before and after."""
    return [
        SizeChange(change.job, change.time, change.before, change.after)
        for change in changes
        if since <= change.time <= until and change.before and change.after and change.before != change.after
    ]


def waiting(
    transitions: Iterable[TransitionRecord], queued: Iterable[str], since: float, until: float
) -> list[Span]:
    """When at least one job waited, from what has happened in the window and the jobs that are queued now."""
    began: dict[str, float] = {}
    spans: list[Span] = []
    for one in transitions:
        if one.before is State.QUEUED:
            spans.append((began.pop(one.job, since), min(one.time, until)))
        if one.after is State.QUEUED:
            began[one.job] = max(one.time, since)
    spans += [(began.get(job, since), until) for job in queued]
    return _union(spans)


def idle(found: Iterable[Bar], slots: Iterable[Slot], waits: Sequence[Span]) -> list[Bar]:
    """When slots were free while a job waited: bars without a job."""
    used: defaultdict[Slot, list[Span]] = defaultdict(list)
    for bar in found:
        used[bar.slot].append((bar.start, bar.end))
    return [
        Bar(slot, SEVERAL, start, end)
        for slot in slots
        for start, end in _difference(waits, _union(used[slot]))
    ]


def _union(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((start, end))
    return joined


def _difference(spans: Iterable[Span], without: Sequence[Span]) -> list[Span]:
    """Spans without others; both in order and apart from each other."""
    left: list[Span] = []
    for start, end in spans:
        for other_start, other_end in without:
            if other_end <= start or other_start >= end:
                continue
            if start < other_start:
                left.append((start, other_start))
            start = other_end  # noqa: PLW2901 - what is left of the span
        if start < end:
            left.append((start, end))
    return left
