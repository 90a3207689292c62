"""What the page of a job shows above its tabs, and the pages that ask before it is changed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from edt_launch.core.history.failure_text import Failure
from edt_launch.core.text.durations import duration
from edt_launch.service.files.series import LOSS
from edt_launch.service.jobs.pages.views.job_tabs.monitor import Monitor
from edt_launch.service.jobs.schemas import Job
from edt_launch.service.jobs.states import ENDED, State, Wanted
from edt_launch.service.web import wording
from edt_launch.service.web.crumbs import Crumb, Tab

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

    job: Job
    crumbs: Sequence[Crumb]
    percent: int | None
    loss: str
    failure: Failure | None
    times: Sequence[tuple[str, float]]
    details: Sequence[tuple[str, str]]
    is_own: bool
    actions: Sequence[str]
    tabs: Sequence[Tab]
    tab: str
    body: object


def job_view(job: Job, tab: str, body: object, crumbs: Sequence[Crumb], *, is_own: bool) -> JobView:
    """The page of a job, from what REST shows of it, and the body of one of its tabs."""
    times = {"Submitted": job.submitted, "Begins": job.begin, "Started": job.started, "Ended": job.ended}
    return JobView(
        job=job,
        crumbs=crumbs,
        percent=100 * (job.step or 0) // job.total_steps if job.total_steps else None,
        loss=_loss(job, body),
        failure=_failure(job),
        times=[(label, at) for label, at in times.items() if at],
        details=_details(job),
        is_own=is_own,
        actions=actions(job) if is_own else (),
        tabs=[
            Tab(shown, f"/jobs/{job.id}?tab={name}", name == tab)
            for name, shown in TABS.items()
            if is_own or name in PUBLIC
        ],
        tab=tab,
        body=body,
    )


def _loss(job: Job, body: object) -> str:
    """The last loss; the same as in the monitor's table where that is shown."""
    shown = [one.last for one in body.values if one.name == LOSS] if isinstance(body, Monitor) else []
    return shown[0] if shown else wording.precise(job.loss)


def _failure(job: Job) -> Failure | None:
    if job.state != State.FAILED or (job.exit_code is None and not job.failure):
        return None
    return Failure.read(job.failure or f"exit code {job.exit_code}")


def _details(job: Job) -> list[tuple[str, str]]:
    limit, array = job.time_limit, job.array_id
    at_once = f", at most {job.array_limit} at a time" if job.array_limit else ""
    found = {
        "Owner": job.owner,
        "Priority": str(job.priority),
        "Weight": wording.number(job.weight, 3),
        "Fair share": wording.number(job.share, 1),
        "Resizes": str(job.resizes),
        "Failed workers": str(job.losses),
        "Restarts": str(job.restarts),
        "Exit code": "" if job.exit_code is None else str(job.exit_code),
        "Time limit": duration(limit) if limit else "",
        "After": ", ".join(job.after),
        "Array": f"{array}, index {job.array_index}{at_once}" if array else "",
        "Restartable": "yes" if job.restartable else "",
        "Preemption": "" if job.preemptible else "keeps its minimum",
    }
    return [(label, value) for label, value in found.items() if value]


UNDONE_BY: Mapping[str, str] = {"pause": "resume", "resume": "pause"}
"""The actions that undo others."""


def actions(job: Job) -> Sequence[str]:
    """What can be done with a job."""
    if job.state in ENDED:
        return ("set", "clone", "delete")
    if job.wanted == Wanted.STOP:
        return ("clone",)
    return ("set", "pause" if job.wanted == Wanted.RUN else "resume", "stop", "clone")
