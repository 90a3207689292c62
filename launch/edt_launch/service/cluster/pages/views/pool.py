"""What the page of the pool shows."""

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.service.jobs.forecast.foreseen import sentences
from edt_launch.service.jobs.forecast.upcoming import Upcoming, clock, starting
from edt_launch.service.jobs.records import HolderRecord
from edt_launch.service.jobs.states import State
from edt_launch.service.web import wording
from edt_launch.service.web.asking import Question

Json = Mapping[str, Any]

WINDOWS: Mapping[str, float] = {
    "15 min": 900.0,
    "1 h": 3600.0,
    "6 h": 21600.0,
    "24 h": 86400.0,
    "7 d": 604800.0,
}
"""Names of windows, and their seconds."""

MOST_SLOTS = 128
"""Slots that have a row each in the picture; of a larger pool, hosts have."""

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
    """The pool; `left_out` is how many rows of the table are not shown.

    Of a large pool, `hosts` are links to pictures of one, and `host` is the one whose slots are shown.
    """

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
    hosts: Sequence[Window]
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
    *,
    is_admin: bool = False,
) -> PoolView:
    """The page, from what REST shows of the cluster and of the time of a window, and what happens next.

    `today` is how many hours of devices all have had since midnight.
    """
    jobs = {job.id: job for job in live}
    is_large = len(timeline["rows"]) > MOST_SLOTS
    names = [one["host"] for one in timeline["hosts"]] if is_large else []
    rows = f"&host={host}" if host else "&rows=hosts" if is_large else ""
    bars = timeline["bars"]
    latest = heapq.nlargest(MOST_ROWS, bars, key=lambda bar: (bar[3], bar[2]))
    return PoolView(
        address=_address(window, host),
        tiles=_tiles(cluster, live, today, now),
        boxes=[_box(host, jobs, now, is_admin) for host in cluster["hosts"]],
        windows=[Window(name, _address(name, host), name == window) for name in WINDOWS],
        window=window,
        owners=[_owner(one) for one in timeline["owners"]],
        changes=[_change(one) for one in reversed(timeline["changes"])],
        following=_following(upcoming),
        had=_had(timeline, latest),
        left_out=len(bars) - len(latest),
        chart=f"/api/v1/timeline?last={WINDOWS[window]:.0f}{rows}",
        hosts=[
            Window("all hosts", _address(window, ""), not host),
            *(Window(name, _address(window, name), name == host) for name in names),
        ]
        if is_large
        else (),
        host=host,
    )


def _address(window: str, host: str) -> str:
    of_host = f"&host={host}" if host else ""
    return f"/pool?window={window.replace(' ', '+')}{of_host}"


def _owner(one: Json) -> Owner:
    share, hours = wording.number(one["share"], 2), wording.number(one["hours"], 2)
    return Owner(one["owner"], one["devices"], share, hours)


def _change(one: Json) -> Change:
    size = wording.size(one["from"], one["to"])
    return Change(one["time"], one["job"], one["name"] or one["job"], one["owner"], size, one["reason"])


def _tiles(cluster: Json, live: Sequence[HolderRecord], today: float, now: float) -> list[Tile]:
    counts = cluster["jobs"]
    running = sum(counts.get(state, 0) for state in (State.STARTING, State.RUNNING))
    waits = [now - (job.waiting_since or job.submitted) for job in live if job.state is State.QUEUED]
    usable = cluster["devices"] - cluster["down"]
    return [
        Tile("Devices used", f"{cluster['used']} of {usable}"),
        Tile("Jobs that run", str(running)),
        Tile("Jobs that wait", str(len(waits))),
        Tile("Longest wait", wording.duration(max(waits)) if waits else wording.NONE),
        Tile("Device hours today", wording.number(today, 1)),
    ]


def _box(host: Json, jobs: Mapping[str, HolderRecord], now: float, is_admin: bool) -> Box:
    cells = [_cell(device, host["state"], jobs, now) for device in host["devices"]]
    return Box(host["name"], host["state"], host["reason"], cells, drain_action(host["state"], is_admin))


def drain_action(state: str, is_admin: bool) -> str:
    """What the viewer can do with a host in a state; empty for nothing."""
    return {"up": "drain", "draining": "undrain"}.get(state, "") if is_admin else ""


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
        f"/pool/hosts/{host}/{action}",
        back,
        hidden=[("back", back)],
        command=f"edt drain {host}" if action == "drain" else f"edt drain --undo {host}",
    )


def _cell(device: Json, host: str, jobs: Mapping[str, HolderRecord], now: float) -> Cell:
    job = jobs.get(device["job"] or "")
    if job is None:
        state = "free" if host == "up" else host
        return Cell(device["name"], state, None, None, f"device {device['name']}: {state}")
    state, suffix = "used", ""
    retried = device["retried"] if (device["retried"] or 0.0) > now else None
    if device["is_leaving"]:
        state, suffix = "leaving", ", its worker is leaving"
    elif retried is not None:
        state, suffix = "suspended", f", suspended after a failure until {wording.moment(retried)}"
    elif job.state is State.STARTING:
        state, suffix = "starting", ", starting"
    title = f"device {device['name']}: {job.name or job.id} of {job.owner}{suffix}"
    return Cell(device["name"], state, job.id, Mark.of(job.number), title, retried)


def _following(upcoming: Upcoming) -> list[Next]:
    """The next starts, and the next ends of jobs."""
    starts = [(start.at, start.job, starting(start)) for start in upcoming.starts.values()]
    ends = [(time, job, f"ends about {clock(time)}") for time, job in upcoming.ends]
    chosen = sorted([*starts[:MOST_NEXT], *ends[:MOST_NEXT]])
    return [Next(job, upcoming.names[job], text) for _, job, text in chosen[:MOST_NEXT]]


def _had(timeline: Json, bars: Iterable[tuple[int, int | None, float, float, int]]) -> list[Had]:
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
        found.append(Had(place, one["id"], name, one["owner"], Mark.of(one["number"]), start, end, why))
    return found
