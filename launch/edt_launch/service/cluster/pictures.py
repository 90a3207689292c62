"""Pictures of the pool: who had which device when."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from edt_launch.service.app.context import MAX_CHANGES, Context
from edt_launch.service.cluster import timeline as drawing
from edt_launch.service.cluster.records import AllocationRecord, HostRecord
from edt_launch.service.files.series import number
from edt_launch.service.jobs.answers import held
from edt_launch.service.jobs.records import HolderRecord, NamedJob, TransitionRecord
from edt_launch.service.jobs.states import State

Json = dict[str, Any]


PARTS = 120
"""Parts of a window, of each of which is told how many devices each owner had."""


LATEST = 5
"""Changes that are told in words."""


DAY = 86400.0


EFFORT = 0.001
"""Part of a processor that the hours of today may take."""


PIXELS = 1200
"""Width of a picture that nothing is said about."""


async def latest(context: Context, last: float, pixels: int = PIXELS) -> Json:
    """The picture of the last so many seconds, like `cluster_schemas.Timeline`; made once for all who ask."""
    jobs = await holders(context)

    def make() -> Json:
        now = context.clock()
        changes = context.recent_history.last(last, now)
        return draw(context, jobs, changes, max(0.0, now - last), now, pixels)

    return await context.drawings.get((last, pixels), make)


def drawn(context: Context, since: float, until: float, pixels: int) -> Json:
    """The picture of a window of the past."""
    changes = context.store.history.window(since, until, MAX_CHANGES + 1)
    return draw(context, context.store.jobs.holders(), changes, since, until, pixels)


async def holders(context: Context) -> Sequence[HolderRecord]:
    """All jobs that have not ended; looked up once for all who ask."""
    return await context.drawings.get("holders", context.store.jobs.holders)


def draw(
    context: Context,
    jobs: Sequence[HolderRecord],
    changes: Sequence[AllocationRecord],
    since: float,
    until: float,
    pixels: int,
) -> Json:
    """The picture of a window, like `cluster_schemas.Timeline`.

    It is made from the jobs that have not ended, and the changes in the window (`History.window`).
    """
    hosts, shortest = context.store.hosts.all(), (until - since) / pixels
    transitions = context.store.jobs.transitions_since(since, MAX_CHANGES + 1)
    exact = drawing.bars(changes, since, until)
    found = drawing.merged(exact, shortest)
    slots = _slots(hosts, found)
    rows = {slot: row for row, slot in enumerate(slots)}
    devices = Counter(host for host, _ in slots)
    resized = drawing.resizes(changes, since, until)
    ids = sorted({bar.job for bar in found if bar.job} | {one.job for one in resized})
    known, owners = context.store.jobs.named(ids), {change.job: change.owner for change in changes}
    used = drawing.usage(exact, lambda bar: owners[bar.job], since, until, PARTS)
    usable = [(host.name, device) for host in hosts if host.state == "up" for device in host.devices]
    waits = _waits(jobs, transitions, since, until)
    idle = drawing.merged(drawing.idle(exact, usable, waits), shortest)
    during = [change for change in changes if since <= change.time <= until]
    sized = [change for change in during if change.before != change.after or change.lost]
    return {
        "since": since,
        "until": until,
        "rows": [{"host": host, "device": device} for host, device in slots],
        "hosts": [{"host": host, "devices": count} for host, count in devices.items()],
        "bands": drawing.bands(exact, list(devices), since, until, PARTS),
        "jobs": [_named(job, known, owners[job]) for job in ids],
        **_bars(found[-MAX_CHANGES:], rows, ids),
        "idle": [(rows[bar.slot], bar.start, bar.end) for bar in drawing.merged(idle, shortest)][
            :MAX_CHANGES
        ],
        "resizes": [_resize(one) for one in resized],
        "losses": [{"job": one.job, "time": one.time, "workers": one.lost} for one in during if one.lost],
        "owners": _owners(jobs, used, until - since),
        "changes": [_change(one, known) for one in sized[-LATEST:]],
        "complete": max(len(changes), len(transitions), len(found)) <= MAX_CHANGES,
    }


async def hours_today(context: Context) -> Mapping[str, float]:
    """Hours of devices that each owner has had since midnight, UTC; made once for all who ask."""
    return await context.drawings.get("today", partial(_hours_today, context), effort=EFFORT)


def _hours_today(context: Context) -> Mapping[str, float]:
    now = context.clock()
    changes = context.recent_history.last(DAY, now)
    owners, hours = {change.job: change.owner for change in changes}, defaultdict[str, float](float)
    for bar in drawing.bars(changes, now - now % DAY, now):
        hours[owners[bar.job]] += (bar.end - bar.start) / 3600
    return dict(sorted(hours.items()))


def _slots(hosts: Sequence[HostRecord], found: Iterable[drawing.Bar]) -> list[drawing.Slot]:
    """The devices that there are, and then those that were used and are gone."""
    present = [(host.name, device) for host in hosts for device in host.devices]
    return [*present, *sorted({bar.slot for bar in found} - set(present))]


def _waits(
    jobs: Iterable[HolderRecord], transitions: Iterable[TransitionRecord], since: float, until: float
) -> Sequence[drawing.Span]:
    queued = [job.id for job in jobs if job.state is State.QUEUED and job.submitted <= until]
    return drawing.waiting(transitions, queued, since, until)


def _bars(found: Sequence[drawing.Bar], rows: Mapping[drawing.Slot, int], jobs: Sequence[str]) -> Json:
    """The bars, and the reasons that they refer to."""
    numbers = {job: number for number, job in enumerate(jobs)}
    reasons = {reason: number for number, reason in enumerate(dict.fromkeys(bar.reason for bar in found))}
    bars = [(rows[bar.slot], numbers.get(bar.job), bar.start, bar.end, reasons[bar.reason]) for bar in found]
    return {"bars": bars, "reasons": list(reasons)}


def _resize(one: drawing.SizeChange) -> Json:
    return {"job": one.job, "time": one.time, "from": one.before, "to": one.after}


def _named(job: str, known: Mapping[str, NamedJob], owner: str) -> Json:
    name, number = (known[job].name, known[job].number) if job in known else ("", 0)
    return {"id": job, "name": name, "owner": owner, "number": number}


def _change(one: AllocationRecord, known: Mapping[str, NamedJob]) -> Json:
    return {
        **{name: getattr(one, name) for name in ("time", "job", "owner", "reason", "lost")},
        "name": known[one.job].name if one.job in known else "",
        "from": one.before,
        "to": one.after,
        "hosts": held(one.devices),
        "leaving": held(one.leaving),
    }


def _owners(
    jobs: Sequence[HolderRecord], used: Mapping[str, Sequence[float]], seconds: float
) -> list[dict[str, Any]]:
    """What each owner had, has, and would have by their fair share."""
    devices, shares = Counter[str](), defaultdict[str, float](float)
    for job in jobs:
        devices[job.owner] += job.devices
        shares[job.owner] += job.share or 0.0
    present = {owner for owner in shares if devices[owner] or shares[owner]}
    return [
        {
            "owner": owner,
            "devices": devices[owner],
            "share": number(shares[owner]),
            "hours": sum(used.get(owner, ())) * seconds / PARTS / 3600,
            "use": [round(part, 3) for part in used.get(owner, [0.0] * PARTS)],
        }
        for owner in sorted(used.keys() | present)
    ]
