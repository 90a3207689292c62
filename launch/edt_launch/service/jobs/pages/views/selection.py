"""What is shown before something is done with several jobs."""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from edt_launch.service.jobs.forecast.foreseen import sentences
from edt_launch.service.jobs.pages.views.job import UNDONE_BY
from edt_launch.service.jobs.schemas import Job
from edt_launch.service.web.asking import Field, Question

Json = Mapping[str, Any]

DONE: Mapping[str, str] = {
    "stop": "stopped",
    "pause": "paused",
    "resume": "resumed",
    "priority": "changed",
    "delete": "deleted",
}

EFFECTS: Mapping[str, str] = {
    "stop": "Stopping is for good. What has been saved stays.",
    "pause": "The state is saved; training goes on from it after a resume.",
    "resume": "Training goes on from the saved state as soon as there are devices.",
    "priority": "Jobs of a higher priority are served first. It takes effect within a second.",
    "delete": "All that was made is deleted, too: models, logs and checkpoints.",
}

MAX_NAMES = 5
"""Jobs that are named."""


def question(
    action: str,
    jobs: Sequence[Job],
    others: int,
    changes: Sequence[Json] | None,
    priority: str | None = None,
    lost: Sequence[str] = (),
) -> Question:
    """The question; `others` were chosen and cannot be done that to, `changes` come of it.

    `priority` is what was written; None for what the jobs have. `lost` is what would be lost by it.
    """
    is_priority = action == "priority"
    if priority is None:
        present = {job.priority for job in jobs}
        priority = str(present.pop()) if len(present) == 1 else ""
    names = [job.name or job.id for job in jobs[:MAX_NAMES]]
    chosen, undo = [("job", job.id) for job in jobs], UNDONE_BY.get(action)
    more = len(jobs) - len(names)
    left_out = f"{others} more that were chosen cannot be {DONE[action]}, and are left as they are."
    return Question(
        "Set the priority of" if is_priority else action.capitalize(),
        f"{len(jobs)} {'job' if len(jobs) == 1 else 'jobs'}",
        [
            ", ".join(names) + (f" and {more} more" if more else ""),
            EFFECTS[action],
            *(f"{text}: it would begin again." for text in lost),
            *sentences(changes),
            *([left_out] if others else []),
        ],
        "/jobs",
        [Field("priority", "Priority", priority, is_required=True)] if is_priority else (),
        [
            ("action", action),
            *([("force", "1")] if lost else []),
            *chosen,
        ],
        button="Set the priority" if is_priority else "",
        can_foresee=is_priority,
        undo="" if undo is None or lost else f"/selected?{urlencode([('action', undo), *chosen])}",
    )
