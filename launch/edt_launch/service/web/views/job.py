"""What the page of a job shows, and those that ask before it is changed."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from edt_launch.core.event_codec import read_line
from edt_launch.launcher.view.wording import describe
from edt_launch.service.states import ENDED, Wanted
from edt_launch.service.web import wording
from edt_launch.service.web.views.jobs import JobRow

Json = Mapping[str, Any]

MOST_RANKS = 256
"""Ranks that are offered."""

TAIL = 200
"""Lines of a log that a page begins with."""


@dataclass(frozen=True)
class Node:
    """A node of the owners' tree, and its share in devices."""

    name: str
    share: str


@dataclass(frozen=True)
class Happened:
    """An event in words."""

    time: float
    text: str


@dataclass(frozen=True)
class Written:
    """What only a job's owner and administrators see; `rank` is whose log it is, None for all."""

    events: Sequence[Happened]
    log: Sequence[str]
    rank: int | None


@dataclass(frozen=True)
class JobView:
    """A job; `events`, `log` and `command` are None for those who may not see them."""

    head: JobRow
    loss: str
    weight: str
    submitted: float
    started: float | None
    ended: float | None
    resizes: int
    restarts: int
    note: str
    actions: Sequence[str]
    why: Sequence[str]
    path: Sequence[Node]
    command: str | None
    events: Sequence[Happened] | None
    log: Sequence[str] | None
    rank: int | None
    ranks: Sequence[int]
    follows: bool
    log_address: str
    all_of_log: str


def job_view(job: Json, why: Json, written: Written | None) -> JobView:
    """The page of a job, from what REST shows of it and of why it has its size."""
    rank = written.rank if written else None
    logs = f"/api/v1/jobs/{job['id']}/logs"
    of_rank = {} if rank is None else {"rank": rank}
    return JobView(
        head=JobRow.of(job),
        loss=wording.precise(job["loss"]),
        weight=wording.number(job["weight"], 3),
        submitted=job["submitted"],
        started=job["started"],
        ended=job["ended"],
        resizes=job["resizes"],
        restarts=job["restarts"],
        note=job["note"],
        actions=actions(job) if written else (),
        why=why["lines"],
        path=[Node(node["node"] or "everybody", wording.number(node["share"], 2)) for node in why["path"]],
        command=None if job["command"] is None else shlex.join(job["command"]),
        events=written.events if written else None,
        log=written.log if written else None,
        rank=rank,
        ranks=range(min(job["max"], MOST_RANKS)),
        follows=job["state"] not in ENDED,
        log_address=f"{logs}?{urlencode({**of_rank, 'tail': TAIL})}",
        all_of_log=f"{logs}?{urlencode(of_rank)}" if of_rank else logs,
    )


def actions(job: Json) -> Sequence[str]:
    """What can be done with a job."""
    if job["state"] in ENDED or job["wanted"] == Wanted.STOP:
        return ()
    return ("set", "pause" if job["wanted"] == Wanted.RUN else "resume", "stop")


def happened(lines: Iterable[bytes], most: int) -> list[Happened]:
    """Lines of `events.jsonl` in words, the latest first, and so many at most."""
    events = filter(None, map(read_line, lines))
    told = [Happened(event.time, text) for event in events if (text := describe(event)) is not None]
    return told[::-1][:most]


@dataclass(frozen=True)
class Field:
    """A field of a form."""

    name: str
    label: str
    value: str
    is_number: bool = True


@dataclass(frozen=True)
class ActView:
    """A question before something is done: `effect` says what it does."""

    id: str
    name: str
    action: str
    effect: str
    fields: Sequence[Field] = ()
    error: str = ""


def act_view(job: Json, action: str, given: Mapping[str, str] | None = None, error: str = "") -> ActView:
    """The question about an action; `given` are the values that its form was sent with."""
    values = given or {name: str(job[name]) for name in LABELS} | {"weight": f"{job['weight']:g}"}
    fields = [Field(name, label, values[name], name != "name") for name, label in LABELS.items()]
    shown = fields if action == "set" else ()
    return ActView(job["id"], job["name"] or job["id"], action, effect(job, action), shown, error)


LABELS: Mapping[str, str] = {
    "min": "Workers at least",
    "max": "Workers at most",
    "priority": "Priority (higher ones are served first)",
    "weight": "Weight (its part of your share)",
    "name": "Name",
}


def effect(job: Json, action: str) -> str:
    """What an action does to a job and to others."""
    size = job["size"]
    freed = f" Its {size} {'device goes' if size == 1 else 'devices go'} to other jobs." if size else ""
    match action:
        case "stop":
            return f"The job ends for good. What it has saved stays.{freed}"
        case "pause":
            return f"The job saves its state and waits until it is resumed.{freed}"
        case "resume":
            return f"The job waits for {job['min']} devices at least, and goes on from its saved state."
        case _:
            return (
                "Other jobs may grow or shrink by that. A running job keeps to the bounds that it was started"
                " with: wider ones count after it has been paused and resumed."
            )
