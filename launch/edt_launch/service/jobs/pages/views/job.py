"""What the page of a job shows above its tabs, and the pages that ask before it is changed."""

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.core.durations import duration
from edt_launch.core.failure_text import Failure
from edt_launch.service.files.series import LOSS
from edt_launch.service.jobs.forecast.foreseen import sentences
from edt_launch.service.jobs.pages.views.job_tabs.monitor import Monitor
from edt_launch.service.jobs.pages.views.jobs import JobRow
from edt_launch.service.jobs.states import ENDED, State, Wanted
from edt_launch.service.web import wording
from edt_launch.service.web.asking import Field, Question
from edt_launch.service.web.crumbs import Crumb

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
    """A job, and the body of the tab of that name.

    Attributes:
        crumbs: addresses and names of the pages above it.
        percent: how far it is; None if it has not reported its total number of steps.
        failure: why it failed; None if it did not, or for others than its owner.
        times: what happened to it, and when.
        details: the rest that is known of it, as labels and values.
        is_own: whether the viewer may see everything.
    """

    head: JobRow
    crumbs: Sequence[Crumb]
    percent: int | None
    loss: str
    failure: Failure | None
    times: Sequence[tuple[str, float]]
    details: Sequence[tuple[str, str]]
    note: str
    reason: str
    is_own: bool
    actions: Sequence[str]
    tabs: Sequence[Tab]
    tab: str
    body: object


def job_view(job: Json, tab: str, body: object, crumbs: Sequence[Crumb], *, is_own: bool) -> JobView:
    """The page of a job, from what REST shows of it, and the body of one of its tabs."""
    times = {"Submitted": "submitted", "Begins": "begin", "Started": "started", "Ended": "ended"}
    return JobView(
        head=JobRow.of(job),
        crumbs=crumbs,
        percent=100 * (job["step"] or 0) // job["total_steps"] if job["total_steps"] else None,
        loss=_loss(job, body),
        failure=_failure(job),
        times=[(label, job[name]) for label, name in times.items() if job[name]],
        details=_details(job),
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


def _loss(job: Json, body: object) -> str:
    """The last loss; the same as in the monitor's table where that is shown."""
    shown = [one.last for one in body.values if one.name == LOSS] if isinstance(body, Monitor) else []
    return shown[0] if shown else wording.precise(job["loss"])


def _failure(job: Json) -> Failure | None:
    if job["state"] != State.FAILED or (job["exit_code"] is None and not job["failure"]):
        return None
    return Failure.read(job["failure"] or f"exit code {job['exit_code']}")


def _details(job: Json) -> list[tuple[str, str]]:
    limit, array = job["time_limit"], job["array_id"]
    at_once = f", at most {job['array_limit']} at a time" if job["array_limit"] else ""
    found = {
        "Owner": job["owner"],
        "Priority": str(job["priority"]),
        "Weight": wording.number(job["weight"], 3),
        "Fair share": wording.number(job["share"], 1),
        "Resizes": str(job["resizes"]),
        "Failed workers": str(job["losses"]),
        "Restarts": str(job["restarts"]),
        "Exit code": "" if job["exit_code"] is None else str(job["exit_code"]),
        "Time limit": duration(limit) if limit else "",
        "After": ", ".join(job["after"]),
        "Array": f"{array}, index {job['array_index']}{at_once}" if array else "",
        "Restartable": "yes" if job["restartable"] else "",
        "Preemption": "" if job["preemptible"] else "keeps its minimum",
    }
    return [(label, value) for label, value in found.items() if value]


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
    changed = changed or {"max": present["max"]}
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
    "min": "Minimum workers",
    "max": "Maximum workers",
    "priority": "Priority (higher first)",
    "weight": "Weight (within your share)",
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
