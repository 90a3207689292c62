"""What the page of the pool shows."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.core.text.durations import duration
from edt_launch.service.jobs.forecast.foreseen import sentences
from edt_launch.service.jobs.forecast.upcoming import Upcoming, clock, starting
from edt_launch.service.jobs.records import HolderRecord
from edt_launch.service.jobs.states import State
from edt_launch.service.web import wording
from edt_launch.service.web.asking import Question
from edt_launch.service.web.crumbs import Tab

Json = Mapping[str, Any]

WINDOWS: Mapping[str, float] = {
    "15 min": 900.0,
    "1 h": 3600.0,
    "6 h": 21600.0,
    "24 h": 86400.0,
    "7 d": 604800.0,
}
"""Names of windows, and their seconds."""

MAX_SLOTS = 128
"""Slots that have a row each in the picture; of a larger pool, hosts have."""

MAX_NEXT = 5
"""Events that are foretold."""

MAX_ROWS = 200
"""Rows of the table of the history: the latest."""


@dataclass(frozen=True)
class Mark:
    """How a job is told from others in pictures."""

    letter: str
    hue: int

    @classmethod
    def of(cls, number: int, owner: int) -> "Mark":
        """The letter of the job of a number, in the hue of its owner's place among all owners."""
        return cls(wording.letter(number), wording.hue(owner))


@dataclass(frozen=True)
class Cell:
    """A device now; `job` is the id of whose it is; `state`: `used`, `leaving`, or how it is free.

    `retried` is when a worker is tried on it again, if one has failed and that is still to come.
    """

    device: str
    state: str
    job: str | None
    mark: Mark | None
    title: str
    retried: float | None = None


@dataclass(frozen=True)
class Tile:
    """A figure."""

    label: str
    value: str


@dataclass(frozen=True)
class Had:
    """A job had a device, for a reason; `job` is None for several, too short to be told apart."""

    slot: str
    job: str | None
    name: str
    owner: str
    mark: Mark | None
    start: float
    end: float
    reason: str


@dataclass(frozen=True)
class Next:
    """What is going to happen to a job, as the end of a sentence about it."""

    job: str
    name: str
    text: str


@dataclass(frozen=True)
class PoolView:
    """The pool.

    Attributes:
        boxes: hosts as REST shows them, and the cells of each.
        holders: jobs that have devices now, with their marks: the legend of the cells.
        owners, changes: as REST shows them in the picture, with `hues` of the owners.
        left_out: how many rows of the table are not shown.
        hosts: of a large pool, links to pictures of one; `host` is the one whose slots are shown.
    """

    address: str
    unit: str
    tiles: Sequence[Tile]
    boxes: Sequence[tuple[Json, Sequence[Cell]]]
    holders: Sequence[tuple[HolderRecord, Mark]]
    windows: Sequence[Tab]
    window: str
    owners: Sequence[Json]
    hues: Mapping[str, int]
    changes: Sequence[Json]
    following: Sequence[Next]
    had: Sequence[Had]
    left_out: int
    chart: str
    hosts: Sequence[Tab]
    host: str


def pool_view(
    cluster: Json,
    live: Sequence[HolderRecord],
    timeline: Json,
    upcoming: Upcoming,
    today: float,
    window: str,
    now: float,
    host: str = "",
) -> PoolView:
    """The page, from what REST shows of the cluster and of the time of a window, and what happens next.

    `today` is how many hours of devices all have had since midnight.
    """
    jobs = {job.id: job for job in live}
    is_large = len(timeline["rows"]) > MAX_SLOTS
    names = [one["host"] for one in timeline["hosts"]] if is_large else []
    rows = f"&host={host}" if host else "&rows=hosts" if is_large else ""
    bars = timeline["bars"]
    latest = heapq.nlargest(MAX_ROWS, bars, key=lambda bar: (bar[3], bar[2]))
    owners = _places(timeline, live)
    unit = unit_of(cluster)
    return PoolView(
        address=_address(window, host),
        unit=unit,
        tiles=_tiles(cluster, live, today, now, unit),
        boxes=[
            (one, [_cell(device, one["state"], jobs, owners, now) for device in one["devices"]])
            for one in cluster["hosts"]
        ],
        holders=[(job, Mark.of(job.number, owners[job.owner])) for job in live if job.devices],
        windows=[Tab(name, _address(name, host), name == window) for name in WINDOWS],
        window=window,
        owners=timeline["owners"],
        hues={owner: wording.hue(place) for owner, place in owners.items()},
        changes=timeline["changes"][::-1],
        following=_following(upcoming),
        had=_had(timeline, latest, owners),
        left_out=len(bars) - len(latest),
        chart=f"/api/v1/timeline?last={WINDOWS[window]:.0f}{rows}",
        hosts=[
            Tab("all hosts", _address(window, ""), not host),
            *(Tab(name, _address(window, name), name == host) for name in names),
        ]
        if is_large
        else (),
        host=host,
    )


def _address(window: str, host: str) -> str:
    of_host = f"&host={host}" if host else ""
    return f"/pool?window={window.replace(' ', '+')}{of_host}"


def unit_of(cluster: Json) -> str:
    """What the pool has: GPUs, or slots where no host has one."""
    names = [device["name"] for host in cluster["hosts"] for device in host["devices"]]
    return "slot" if names and all(name.startswith("cpu") for name in names) else "GPU"


def _places(timeline: Json, live: Sequence[HolderRecord]) -> Mapping[str, int]:
    """The place of each owner, by which they have their hue: as in the picture, and then the others."""
    shown = [one["owner"] for one in timeline["owners"]]
    others = sorted({job.owner for job in live} | {job["owner"] for job in timeline["jobs"]})
    return {owner: place for place, owner in enumerate(dict.fromkeys([*shown, *others]))}


def _tiles(cluster: Json, live: Sequence[HolderRecord], today: float, now: float, unit: str) -> list[Tile]:
    counts = cluster["jobs"]
    running = sum(counts.get(state, 0) for state in (State.STARTING, State.RUNNING))
    waits = [now - (job.waiting_since or job.submitted) for job in live if job.state is State.QUEUED]
    usable, title = cluster["devices"] - cluster["down"], unit[:1].upper() + unit[1:]
    return [
        Tile(f"{title}s in use", f"{cluster['used']} of {usable}"),
        Tile("Running", str(running)),
        Tile("Queued", str(len(waits))),
        Tile("Longest wait", duration(max(waits)) if waits else wording.NONE),
        Tile(f"{title}-hours today", wording.number(today, 2)),
    ]


DRAINS = {
    "drain": "Its workers move to other hosts, or their jobs shrink, and no new ones come. Jobs that cannot "
    "save their work stay until they end.",
    "undrain": "Workers may come to it again.",
}


def drain_question(host: str, action: str, changes: Sequence[Json] | None, back: str) -> Question:
    """The question about draining a host, or ending that; `changes` come of it."""
    effect = [DRAINS[action], *sentences(changes)]
    return Question(
        action.capitalize(),
        host,
        effect,
        back,
        hidden=[("back", back)],
        command=f"edt drain {host}" if action == "drain" else f"edt drain --undo {host}",
        undo=f"/pool/hosts/{host}/{'undrain' if action == 'drain' else 'drain'}?back={back}",
    )


def _cell(
    device: Json, host: str, jobs: Mapping[str, HolderRecord], owners: Mapping[str, int], now: float
) -> Cell:
    job = jobs.get(device["job"] or "")
    if job is None:
        state = "free" if host == "up" else host
        return Cell(device["name"], state, None, None, f"{device['name']}: {state}")
    state, suffix = "used", ""
    retried = device["retried"] if (device["retried"] or 0.0) > now else None
    if device["is_leaving"]:
        state, suffix = "leaving", ", its worker is leaving"
    elif retried is not None:
        state, suffix = "suspended", f", suspended after a failure until {wording.moment(retried)}"
    elif job.state is State.STARTING:
        state, suffix = "starting", ", starting"
    title = f"{device['name']}: {job.name or job.id} of {job.owner}{suffix}"
    return Cell(device["name"], state, job.id, Mark.of(job.number, owners[job.owner]), title, retried)


def _following(upcoming: Upcoming) -> list[Next]:
    """The next starts, and the next ends of jobs."""
    starts = [(start.at, start.job, starting(start)) for start in upcoming.starts.values()]
    ends = [(time, job, f"ends about {clock(time)}") for time, job in upcoming.ends]
    chosen = sorted([*starts[:MAX_NEXT], *ends[:MAX_NEXT]])
    return [Next(job, upcoming.names[job], text) for _, job, text in chosen[:MAX_NEXT]]


def _had(
    timeline: Json, bars: Iterable[tuple[int, int | None, float, float, int]], owners: Mapping[str, int]
) -> list[Had]:
    found = []
    for row, job, start, end, reason in bars:
        slot = timeline["rows"][row]
        place = f"{slot['host']} {slot['device']}"
        if job is None:
            found.append(Had(place, None, "several jobs", "", None, start, end, ""))
            continue
        one = timeline["jobs"][job]
        name = one["name"] or one["id"]
        why = timeline["reasons"][reason]
        mark = Mark.of(one["number"], owners[one["owner"]])
        found.append(Had(place, one["id"], name, one["owner"], mark, start, end, why))
    return found
