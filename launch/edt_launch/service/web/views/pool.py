"""What the page of the pool shows."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.service.database.records import HolderRecord
from edt_launch.service.foreseen import sentences
from edt_launch.service.states import State
from edt_launch.service.upcoming import Upcoming, clock, starting
from edt_launch.service.web import wording
from edt_launch.service.web.views.asking import Question

Json = Mapping[str, Any]

WINDOWS: Mapping[str, float] = {
    "15 min": 900.0,
    "1 h": 3600.0,
    "6 h": 21600.0,
    "24 h": 86400.0,
    "7 d": 604800.0,
}
"""Names of windows, and their seconds."""

MOST_NEXT = 5
"""Events that are foretold."""

MOST_ROWS = 200
"""Rows of the table of who had what: the latest."""


@dataclass(frozen=True)
class Mark:
    """How a job is told from others in pictures."""

    letter: str
    hue: int

    @classmethod
    def of(cls, number: int) -> "Mark":
        """That of the job of a number."""
        return cls(wording.letter(number), wording.hue(number))


@dataclass(frozen=True)
class Cell:
    """A device now; `job` is the id of whose it is; `state`: `used`, `leaving`, or how it is free."""

    device: str
    state: str
    job: str | None
    mark: Mark | None
    title: str


@dataclass(frozen=True)
class Box:
    """A host now; `action` is what the viewer can do with it, empty for nothing."""

    name: str
    state: str
    reason: str
    cells: Sequence[Cell]
    action: str


@dataclass(frozen=True)
class Tile:
    """A figure."""

    label: str
    value: str


@dataclass(frozen=True)
class Had:
    """A job had a device; `job` is None for several, too short to be told apart."""

    slot: str
    job: str | None
    name: str
    owner: str
    mark: Mark | None
    start: float
    end: float


@dataclass(frozen=True)
class Owner:
    """What an owner's jobs have, would have by their fair shares, and had."""

    name: str
    devices: int
    share: str
    hours: str


@dataclass(frozen=True)
class Change:
    """A job's size was changed."""

    time: float
    job: str
    name: str
    owner: str
    size: str
    reason: str


@dataclass(frozen=True)
class Next:
    """What is going to happen to a job, as the end of a sentence about it."""

    job: str
    name: str
    text: str


@dataclass(frozen=True)
class Window:
    """A link to another window of time."""

    name: str
    address: str
    is_chosen: bool


@dataclass(frozen=True)
class PoolView:
    """The pool; `left_out` is how many rows of the table are not shown."""

    address: str
    tiles: Sequence[Tile]
    boxes: Sequence[Box]
    windows: Sequence[Window]
    window: str
    owners: Sequence[Owner]
    changes: Sequence[Change]
    following: Sequence[Next]
    had: Sequence[Had]
    left_out: int
    chart: str
    slots: int


def pool_view(
    cluster: Json,
    live: Sequence[HolderRecord],
    timeline: Json,
    upcoming: Upcoming,
    window: str,
    now: float,
    *,
    is_admin: bool = False,
) -> PoolView:
    """The page, from what REST shows of the cluster and of the time of a window, and what happens next."""
    jobs = {job.id: job for job in live}
    bars = timeline["bars"]
    latest = heapq.nlargest(MOST_ROWS, bars, key=lambda bar: (bar[3], bar[2]))
    return PoolView(
        address=_address(window),
        tiles=_tiles(cluster, live, now),
        boxes=[_box(host, jobs, is_admin) for host in cluster["hosts"]],
        windows=[Window(name, _address(name), name == window) for name in WINDOWS],
        window=window,
        owners=[
            Owner(
                one["owner"], one["devices"], wording.number(one["share"], 2), wording.number(one["hours"], 2)
            )
            for one in timeline["owners"]
        ],
        changes=[
            Change(
                one["time"],
                one["job"],
                one["name"] or one["job"],
                one["owner"],
                wording.size(one["from"], one["to"]),
                one["reason"],
            )
            for one in reversed(timeline["changes"])
        ],
        following=_following(upcoming),
        had=_had(timeline, latest),
        left_out=len(bars) - len(latest),
        chart=f"/api/v1/timeline?last={WINDOWS[window]:.0f}",
        slots=len(timeline["rows"]),
    )


def _address(window: str) -> str:
    return f"/pool?window={window.replace(' ', '+')}"


def _tiles(cluster: Json, live: Sequence[HolderRecord], now: float) -> list[Tile]:
    counts = cluster["jobs"]
    running = sum(counts.get(state, 0) for state in (State.STARTING, State.RUNNING))
    waits = [now - (job.waiting_since or job.submitted) for job in live if job.state is State.QUEUED]
    usable = cluster["devices"] - cluster["down"]
    return [
        Tile("Devices used", f"{cluster['used']} of {usable}"),
        Tile("Jobs that run", str(running)),
        Tile("Jobs that wait", str(len(waits))),
        Tile("Longest wait", wording.duration(max(waits)) if waits else wording.NONE),
    ]


def _box(host: Json, jobs: Mapping[str, HolderRecord], is_admin: bool) -> Box:
    cells = [_cell(device, host["state"], jobs) for device in host["devices"]]
    return Box(host["name"], host["state"], host["reason"], cells, drain_action(host["state"], is_admin))


def drain_action(state: str, is_admin: bool) -> str:
    """What the viewer can do with a host in a state; empty for nothing."""
    return {"up": "drain", "draining": "undrain"}.get(state, "") if is_admin else ""


DRAINS = {
    "drain": "Its workers move to other hosts, or their jobs shrink, and no new ones come.",
    "undrain": "Workers may come to it again.",
}


def drain_question(host: str, action: str, changes: Sequence[Json] | None, back: str) -> Question:
    """The question about draining a host, or ending that; `changes` come of it."""
    effect = [DRAINS[action], *sentences(changes)]
    return Question(
        action.capitalize(), host, effect, f"/pool/hosts/{host}/{action}", back, hidden=[("back", back)]
    )


def _cell(device: Json, host: str, jobs: Mapping[str, HolderRecord]) -> Cell:
    job = jobs.get(device["job"] or "")
    if job is None:
        state = "free" if host == "up" else host
        return Cell(device["name"], state, None, None, f"device {device['name']}: {state}")
    state, suffix = "used", ""
    if device["is_leaving"]:
        state, suffix = "leaving", ", its worker is leaving"
    elif job.state is State.STARTING:
        state, suffix = "starting", ", starting"
    title = f"device {device['name']}: {job.name or job.id} of {job.owner}{suffix}"
    return Cell(device["name"], state, job.id, Mark.of(job.number), title)


def _following(upcoming: Upcoming) -> list[Next]:
    """The next starts, and the next ends of jobs."""
    starts = [(start.at, start.job, starting(start)) for start in upcoming.starts.values()]
    ends = [(time, job, f"ends about {clock(time)}") for time, job in upcoming.ends]
    chosen = sorted([*starts[:MOST_NEXT], *ends[:MOST_NEXT]])
    return [Next(job, upcoming.names[job], text) for _, job, text in chosen[:MOST_NEXT]]


def _had(timeline: Json, bars: Iterable[tuple[int, int | None, float, float]]) -> list[Had]:
    found = []
    for row, job, start, end in bars:
        slot = timeline["rows"][row]
        place = f"{slot['host']} {slot['device']}"
        if job is None:
            found.append(Had(place, None, "several jobs", "", None, start, end))
            continue
        one = timeline["jobs"][job]
        name = one["name"] or one["id"]
        found.append(Had(place, one["id"], name, one["owner"], Mark.of(one["number"]), start, end))
    return found
