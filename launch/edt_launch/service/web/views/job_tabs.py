"""What the tabs of a job's page show."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

from edt_launch.core.events import Event
from edt_launch.launcher.view.phases import PHASES
from edt_launch.launcher.view.wording import describe
from edt_launch.service.states import ENDED
from edt_launch.service.web import wording
from edt_launch.service.web.ansi import Piece, pieces
from edt_launch.service.web.views.lives import Lives

Json = Mapping[str, Any]

MOST_RANKS = 256
"""Ranks that are offered."""

TAIL = 200
"""Lines of a log that a page begins with."""

MOST_ROWS = 100
"""Rows of the table beside the plots."""

MOST_RESIZES = 100
"""Pauses that are shown with their phases: the latest."""

POINTS = 600
"""Points of a plot."""

X_AXES: Mapping[str, str] = {"step": "step", "training": "training time", "clock": "clock"}
"""What plots may be over."""

TOTAL = "total_steps"
"""What a job reports of its progress alone: it is not offered."""

SMOOTH = ("0", "0.6", "0.9", "0.99")
"""Weights of what came before, in a smoothed curve."""


@dataclass(frozen=True)
class Value:
    """A reported value, before thinning."""

    name: str
    is_chosen: bool
    lowest: str
    highest: str
    last: str
    missing: int


@dataclass(frozen=True)
class Monitor:
    """Plots, and the table that says the same; `columns` are the values of its `rows`."""

    values: Sequence[Value]
    x: str
    axes: Mapping[str, str]
    is_log: bool
    smooth: str
    smooths: Sequence[str]
    data: str
    csv: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


def monitor(
    job_id: str, course: Json, chosen: Sequence[str], x: str, *, is_log: bool, smooth: str
) -> Monitor:
    """The tab, from a job's course; `chosen` are the values that are plotted."""
    about = course["about"]
    names = list(dict.fromkeys([*chosen, *(name for name in course["names"] if name != TOTAL)]))
    query = urlencode([("name", name) for name in chosen])
    data = f"/api/v1/jobs/{job_id}/metrics?{query}&points={POINTS}"
    total = len(course["time"])
    shown = sorted({*range(0, total, max(1, -(-total // MOST_ROWS))), *([total - 1] if total else [])})
    return Monitor(
        values=[_value(name, about.get(name), name in chosen) for name in names],
        x=x,
        axes=X_AXES,
        is_log=is_log,
        smooth=smooth,
        smooths=SMOOTH,
        data=data,
        csv=f"/jobs/{job_id}/series.csv?{query}",
        columns=chosen,
        rows=[
            (
                str(course["step"][at]),
                wording.duration(course["training"][at]),
                wording.moment(course["time"][at]),
                str(course["size"][at]),
                wording.precise(course["throughput"][at]),
                *(wording.precise(course["values"][name][at]) for name in chosen),
            )
            for at in shown
        ],
    )


def _value(name: str, about: Json | None, is_chosen: bool) -> Value:
    lowest, highest, last = (
        wording.precise(about[one] if about else None) for one in ("lowest", "highest", "last")
    )
    return Value(name, is_chosen, lowest, highest, last, about["missing"] if about else 0)


@dataclass(frozen=True)
class Node:
    """A node of the owners' tree, its share in devices, and that of the whole in percent."""

    name: str
    share: str
    percent: float


BINDINGS: Mapping[str | None, str] = {
    "min": "its minimum",
    "max": "its maximum",
    "speed": "that more workers do not make it faster",
    "share": "its fair share",
    "limit": "the limit of an owner",
    "tier": "jobs of a higher priority",
    "stability": "that a change now would cost more than it brings",
    "hand-over": "devices that are being handed over",
    "admission": "the jobs before it",
    "fragments": "the numbers of workers that it can run with",
}
"""What binds, in words, by the names of `allocator.model.Binding`."""


@dataclass(frozen=True)
class Size:
    """Why a job has its size: what binds, what would change that; of a job that waits, when it starts."""

    lines: Sequence[str]
    binds: str
    change: str
    start: str
    path: Sequence[Node]


def size(why: Json) -> Size:
    """The tab, from REST's reasons."""
    most = max((node["share"] for node in why["path"]), default=0.0)
    nodes = [
        Node(
            node["node"] or "everybody",
            wording.number(node["share"], 2),
            round(100 * node["share"] / most, 1) if most else 0.0,
        )
        for node in why["path"]
    ]
    start = why["start"]
    told = f"It {start['text']}." if start else ""
    apart = (why["change"], told)
    lines = [line for line in why["lines"] if line not in apart]
    return Size(lines, BINDINGS.get(why["binding"], ""), why["change"], told, nodes)


LEVELS: Mapping[str, str] = {"": "any", "warning": "warnings and errors", "error": "errors"}
"""The least level of lines that are looked for, and how that is shown."""


@dataclass(frozen=True)
class Hit:
    """A line that was found, and the page that shows it among its neighbours."""

    text: str
    address: str


@dataclass(frozen=True)
class Logs:
    """The end of a log, or lines around a place of it.

    Attributes:
        rank: whose log it is; None for all.
        at: the place, in bytes; None for the end.
        text, level: what is searched for; `hits` are the lines that have it, None if nothing is.
        wraps: whether long lines are wrapped; `other_wrap` is the address of the opposite.
        more: the address of further hits; None at the end.
        follow: the address of what will be appended; None if nothing is shown as it comes.
    """

    rank: int | None
    ranks: Sequence[int]
    lines: Sequence[Sequence[Piece]]
    at: int | None
    text: str
    level: str
    levels: Mapping[str, str]
    wraps: bool
    other_wrap: str
    hits: Sequence[Hit] | None
    more: str | None
    follow: str | None
    whole: str
    earlier: str | None
    later: str | None


def logs(
    job: Json,
    rank: int | None,
    lines: Sequence[bytes],
    at: int | None,
    around: tuple[int, int] | None,
    text: str,
    found: Json | None,
    level: str = "",
    *,
    wraps: bool = True,
) -> Logs:
    """The tab; `around` is where earlier and later lines are, `found` is REST's answer to a search."""
    own = f"/jobs/{job['id']}"
    of_rank = {} if rank is None else {"rank": rank}
    unwrapped = {} if wraps else {"wrap": "0"}
    here = {"tab": "logs", **of_rank, **unwrapped}
    looking = {name: value for name, value in (("text", text), ("level", level)) if value}
    place = {} if at is None else {"at": at}

    def page(**more: Any) -> str:
        return f"{own}?{urlencode({**here, **more})}"

    following = found["next"] if found else None
    is_followed = at is None and job["state"] not in ENDED
    rest = f"/api/v1/jobs/{job['id']}/logs"
    return Logs(
        rank=rank,
        ranks=range(min(job["max"], MOST_RANKS)),
        lines=[pieces(line) for line in lines],
        at=at,
        text=text,
        level=level,
        levels=LEVELS,
        wraps=wraps,
        other_wrap=page(**looking, **place, wrap="0" if wraps else ""),
        hits=[
            Hit(wording.plain(hit["text"].encode(errors="replace")), page(at=hit["offset"]))
            for hit in found["hits"]
        ]
        if found
        else None,
        more=page(**looking, after=following) if following is not None else None,
        follow=f"{rest}?{urlencode({**of_rank, 'tail': TAIL, 'follow': 1})}" if is_followed else None,
        whole=f"{rest}?{urlencode(of_rank)}" if of_rank else rest,
        earlier=page(at=around[0]) if around and at else None,
        later=page(at=around[1]) if around else None,
    )


@dataclass(frozen=True)
class Happened:
    """An event in words."""

    time: float
    text: str


@dataclass(frozen=True)
class Phase:
    """A part of a resize; `left` and `width` are percents of the longest one."""

    name: str
    seconds: str
    number: int
    left: float
    width: float


@dataclass(frozen=True)
class Resize:
    """A resize, and how its time was spent."""

    time: float
    size: str
    pause: str
    reason: str
    phases: Sequence[Phase]


@dataclass(frozen=True)
class Events:
    """What has happened, the latest first; `failure` is the first one of the job."""

    failure: str
    resizes: Sequence[Resize]
    phases: Sequence[tuple[int, str]]
    lives: Lives
    events: Sequence[Happened]


def events(job: Json, pauses: Sequence[Json], lives: Lives, happened: Sequence[Happened]) -> Events:
    """The tab."""
    shown = [one for one in pauses if one["from"] is not None][-MOST_RESIZES:]
    longest = max((sum(one["phases"].values()) for one in shown), default=0.0)
    return Events(
        failure=job["failure"] or "",
        resizes=[
            Resize(
                one["end"],
                wording.size(one["from"], one["to"]),
                f"{one['end'] - one['start']:.2f} s",
                one["reason"],
                _phases(one["phases"], longest),
            )
            for one in reversed(shown)
        ],
        phases=[(number, name.replace("_", " ")) for number, name in enumerate(PHASES)],
        lives=lives,
        events=happened,
    )


def _phases(seconds: Mapping[str, float], longest: float) -> list[Phase]:
    found, left = [], 0.0
    for number, name in enumerate(PHASES):
        width = 100 * seconds.get(name, 0.0) / longest if longest else 0.0
        if width:
            shown = name.replace("_", " ")
            found.append(Phase(shown, f"{seconds[name]:.2f} s", number, round(left, 2), round(width, 2)))
        left += width
    return found


def happened(found: Iterable[Event], most: int) -> list[Happened]:
    """Events in words, the latest first, and so many at most."""
    described = [Happened(event.time, text) for event in found if (text := describe(event)) is not None]
    return described[::-1][:most]


@dataclass(frozen=True)
class File:
    """A file that a job has made; `depth` is how many folders it is in."""

    name: str
    size: str
    time: float
    address: str


@dataclass(frozen=True)
class Folder:
    """A folder, its own files, and the archive of all that is in it."""

    name: str
    archive: str
    files: Sequence[File]


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint on disk; `check` looks at its checksums, `clone` starts a job from it."""

    name: str
    step: int
    size: str
    time: float
    address: str
    state: str
    check: str
    clone: str


@dataclass(frozen=True)
class Results:
    """What a job has made."""

    folders: Sequence[Folder]
    is_complete: bool
    checkpoints: Sequence[Checkpoint]
    archive: str


STATES: Mapping[str, str] = {
    "complete": "complete",
    "whole": "whole: its checksums are right",
    "damaged": "damaged: it cannot be loaded",
    "unknown": "nothing says what it should be",
}
"""How checkpoints are, in words."""


def results(job_id: str, made: Json, checkpoints: Sequence[Json], checked: Mapping[str, str]) -> Results:
    """The tab, from REST's lists, and how checkpoints are that were checked."""
    rest = f"/api/v1/jobs/{job_id}"
    by_folder: dict[str, list[File]] = {}
    for one in sorted(made["files"], key=lambda file: file["name"]):
        folder, _, name = one["name"].rpartition("/")
        address = f"{rest}/files/{quote(one['name'])}"
        by_folder.setdefault(folder, []).append(File(name, wording.amount(one["size"]), one["time"], address))
    return Results(
        [
            Folder(name or "/", f"{rest}/results?{urlencode({'name': name})}", files)
            for name, files in sorted(by_folder.items(), key=_order)
        ],
        made["complete"],
        [
            Checkpoint(
                one["name"],
                one["step"],
                wording.amount(one["size"]),
                one["time"],
                one["url"],
                STATES[checked.get(one["name"], one["state"])],
                f"/jobs/{job_id}?tab=results&check={one['name']}",
                f"/jobs/{job_id}/clone?checkpoint={one['name']}",
            )
            for one in reversed(checkpoints)
        ],
        f"{rest}/results",
    )


def _order(folder: tuple[str, object]) -> tuple[bool, str]:
    """The model first: it is what people look for."""
    return folder[0].partition("/")[0] != "model", folder[0]


_SECRET = re.compile(r"secret|token|passw|key|credential|auth", re.IGNORECASE)


@dataclass(frozen=True)
class Definition:
    """What a job runs; `slots` are hosts with their devices."""

    command: str
    directory: str
    framework: str
    environment: Sequence[tuple[str, str]]
    files: Sequence[tuple[str, str]]
    files_left_out: int
    slots: Sequence[tuple[str, str]]


def definition(job: Json, submitted: Mapping[str, int], most: int = 200) -> Definition:
    """The tab; `submitted` are sizes of the submitted files. Values that look like secrets are left out."""
    return Definition(
        shlex.join(job["command"]),
        job["directory"],
        job["framework"] or "",
        [
            (name, "…" if _SECRET.search(name) else value)
            for name, value in sorted(job["environment"].items())
        ],
        [(name, wording.amount(size)) for name, size in sorted(submitted.items())[:most]],
        max(0, len(submitted) - most),
        [(one["host"], ", ".join(one["devices"])) for one in job["hosts"]],
    )
