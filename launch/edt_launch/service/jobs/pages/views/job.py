"""What the page of a job shows above its tabs, and the pages that ask before it is changed."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.service.jobs.forecast.foreseen import sentences
from edt_launch.service.jobs.pages.views.jobs import JobRow
from edt_launch.service.jobs.states import ENDED, Wanted
from edt_launch.service.web import wording
from edt_launch.service.web.asking import Field, Question

Json = Mapping[str, Any]

TABS: Mapping[str, str] = {
    "monitor": "Monitor",
    "size": "Why this size",
    "logs": "Logs",
    "events": "Events",
    "results": "Results",
    "definition": "Definition",
}
"""Names of the tabs, as in the address and as shown."""

PUBLIC = frozenset({"size"})
"""Tabs that everybody may see."""


@dataclass(frozen=True)
class Tab:
    """A link to a tab."""

    name: str
    address: str
    is_chosen: bool


@dataclass(frozen=True)
class JobView:
    """A job, and the body of the tab of that name; `is_own`: whether the viewer may see everything."""

    head: JobRow
    loss: str
    weight: str
    submitted: float
    started: float | None
    ended: float | None
    resizes: int
    restarts: int
    losses: int
    note: str
    reason: str
    is_own: bool
    actions: Sequence[str]
    tabs: Sequence[Tab]
    tab: str
    body: object


def job_view(job: Json, tab: str, body: object, *, is_own: bool) -> JobView:
    """The page of a job, from what REST shows of it, and the body of one of its tabs."""
    return JobView(
        head=JobRow.of(job),
        loss=wording.precise(job["loss"]),
        weight=wording.number(job["weight"], 3),
        submitted=job["submitted"],
        started=job["started"],
        ended=job["ended"],
        resizes=job["resizes"],
        restarts=job["restarts"],
        losses=job["losses"],
        note=job["note"],
        reason=job["reason"],
        is_own=is_own,
        actions=actions(job) if is_own else (),
        tabs=[
            Tab(shown, f"/jobs/{job['id']}?tab={name}", name == tab)
            for name, shown in TABS.items()
            if is_own or name in PUBLIC
        ],
        tab=tab,
        body=body,
    )


def actions(job: Json) -> Sequence[str]:
    """What can be done with a job."""
    if job["state"] in ENDED:
        return ("clone", "delete")
    if job["wanted"] == Wanted.STOP:
        return ("clone",)
    return ("set", "pause" if job["wanted"] == Wanted.RUN else "resume", "stop", "clone")


def question(
    job: Json,
    action: str,
    changes: Sequence[Json] | None = None,
    given: Mapping[str, str] | None = None,
    error: str = "",
    lost: str = "",
) -> Question:
    """The question about an action.

    Args:
        job: as REST shows it.
        action: its name.
        changes: of jobs' sizes that come of it, as REST foresees them; None if nobody can say.
        given: the values that its form was sent with.
        error: what was wrong with them.
        lost: what would be lost by it; empty if nothing would.
    """
    values = given or settings(job)
    fields = [Field(name, label, values[name], name != "name") for name, label in LABELS.items()]
    address = f"/jobs/{job['id']}"
    return Question(
        "Change" if action == "set" else action.capitalize(),
        job["name"] or job["id"],
        [
            f"{lost}: it would begin again when it is resumed." if lost else effect(job, action),
            *sentences(changes),
        ],
        f"{address}/{action}",
        address,
        fields if action == "set" else (),
        [("seen", json.dumps(settings(job)))] if action == "set" else [("force", "1")] if lost else (),
        error=error,
        can_foresee=action == "set",
        command=_command(job["id"], action, given or {}, settings(job)) + (" --force" if lost else ""),
    )


def _command(job: str, action: str, given: Mapping[str, str], present: Mapping[str, str]) -> str:
    """That does the same; of a change, with what differs in the form."""
    if action != "set":
        return f"edt {'rm' if action == 'delete' else action} {job}"
    changed = {name: value for name, value in given.items() if value.strip() not in ("", present[name])}
    changed = changed or {"max": "4"}
    words = [word for name, value in changed.items() for word in (f"--{name}", value)]
    return shlex.join(["edt", "set", job, *words])


def settings(job: Json) -> dict[str, str]:
    """What can be changed of a job, as its form has it."""
    return {name: str(job[name]) for name in LABELS} | {"weight": f"{job['weight']:g}"}


def conflict(job: Json, seen: Mapping[str, str]) -> str:
    """Which of a job's `settings` differ from what was `seen` of them, in words; empty if none does."""
    return "; ".join(
        f"{LABELS[name].partition(' (')[0]} is {value} now, and was {seen[name]}"
        for name, value in settings(job).items()
        if seen.get(name, value) != value
    )


def rebased(given: Mapping[str, str], seen: Mapping[str, str], job: Json) -> dict[str, str]:
    """The values of a form, of which those that were left as they were `seen` are as they are now."""
    present = settings(job)
    return {
        name: present[name] if value.strip() == seen.get(name) else value for name, value in given.items()
    }


LABELS: Mapping[str, str] = {
    "min": "Workers at least",
    "max": "Workers at most",
    "priority": "Priority (higher ones are served first)",
    "weight": "Weight (its part of your share)",
    "name": "Name",
}


CLONED: Mapping[str, str] = {"name": "Name", "command": "Command", **LABELS}


def clone_question(
    job: Json,
    given: Mapping[str, str] | None = None,
    error: str = "",
    forecast: Json | None = None,
    checkpoint: str = "",
) -> Question:
    """The form for a job like another one.

    Args:
        job, given, error: as in `question`.
        forecast: what submitting it would do, as REST says it; None if that was not asked for.
        checkpoint: the name of the one that it goes on from; empty: it begins anew.
    """
    values = given or settings(job) | {"command": shlex.join(job["command"])}
    return Question(
        "Clone",
        job["name"] or job["id"],
        [
            "A new job with the same submitted files, and with the same settings but for these.",
            *([f"It goes on from a copy of {checkpoint}."] if checkpoint else []),
            *_forecast(forecast),
        ],
        f"/jobs/{job['id']}/clone",
        f"/jobs/{job['id']}",
        [Field(name, label, values[name], name not in ("name", "command")) for name, label in CLONED.items()],
        [("checkpoint", checkpoint)] if checkpoint else (),
        error=error,
        can_foresee=True,
    )


def _forecast(forecast: Json | None) -> list[str]:
    if forecast is None:
        return []
    target = forecast["job"]["target"]
    own = f"It starts at once with {target}." if target else f"It {forecast['job']['reason']}."
    return [own, *sentences([one for one in forecast["changes"] if one["job"] is not None])]


def effect(job: Json, action: str) -> str:
    """What an action does to a job and to others."""
    size = job["size"]
    freed = f" Its {size} {'device is' if size == 1 else 'devices are'} free then." if size else ""
    match action:
        case "stop":
            return f"The job ends for good. What it has saved stays.{freed}"
        case "pause":
            return f"The job saves its state and waits until it is resumed.{freed}"
        case "delete":
            return "The job and all that it has made are deleted: model, logs and checkpoints, too."
        case "resume":
            least = f"{job['min']} {'device' if job['min'] == 1 else 'devices'}"
            return f"The job waits for {least} at least, and goes on from its saved state."
        case _:
            return (
                "Other jobs may grow or shrink by that. A running job keeps to the bounds that it was started"
                " with: wider ones count after it has been paused and resumed."
            )
