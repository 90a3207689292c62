"""Why a job has its size, for people: from what the allocator has said last."""

from collections.abc import Mapping
from typing import Any

from edt_launch.allocator import explain as allocator
from edt_launch.allocator.model import Binding, Reason
from edt_launch.service.database import terms
from edt_launch.service.database.records import JobRecord
from edt_launch.service.series import number


def explain(job: JobRecord) -> dict[str, Any]:
    """The allocator's reason, and the same in a few lines."""
    reason = None if job.why is None else reason_of(job.why, job)
    return {
        "share": number(job.share),
        "target": job.target,
        "size": job.size,
        "binding": None if reason is None else reason.binding.value,
        "path": [] if reason is None else [{"node": node, "share": share} for node, share in reason.path],
        "text": job.reason if reason is None else reason.text,
        "change": "" if reason is None else reason.change,
        "lines": _lines(job, reason),
    }


def reason_of(why: Mapping[str, Any], job: JobRecord) -> Reason:
    """The allocator's reason, from the form in which the loop stores it."""
    return Reason(
        binding=Binding(why["binding"]),
        share=float(why.get("share", job.share or 0.0)),
        target=int(why.get("target", job.target)),
        path=tuple((str(node), float(share)) for node, share in why.get("path", ())),
        text=str(why.get("text", job.reason)),
        change=str(why.get("change", "")),
    )


def _lines(job: JobRecord, reason: Reason | None) -> list[str]:
    state = f"{job.id} has {job.state}" if job.has_ended else f"{job.id} is {job.state}"
    if job.has_ended or reason is None:
        return [f"{state}: {job.reason}"]
    # What has happened since the last decision, a pause say, is in the job's own reason.
    own = [] if job.reason == reason.text else [f"{state}: {job.reason}"]
    return [*own, *allocator.explain(terms.job(job, protected=0.0), reason)]
