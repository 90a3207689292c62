"""Why a job has its size, for people: from what the allocator has said last."""

from typing import Any

from edt_launch.service.database.records import JobRecord
from edt_launch.service.series import number


def explain(job: JobRecord) -> dict[str, Any]:
    """The allocator's reason, and the same in a few lines."""
    why = dict(job.why or {})
    path = [{"node": str(name), "share": float(share)} for name, share in why.get("path", ())]
    text, change = str(why.get("text") or job.reason), str(why.get("change") or "")
    return {
        "share": number(job.share),
        "target": job.target,
        "size": job.size,
        "binding": why.get("binding"),
        "path": path,
        "text": text,
        "change": change,
        "lines": _lines(job, path, text, change),
    }


def _lines(job: JobRecord, path: list[dict[str, Any]], text: str, change: str) -> list[str]:
    if job.has_ended:
        return [f"{job.id} has {job.state}: {job.reason}"]
    bounds = f"{job.min}" if job.min == job.max else f"{job.min} to {job.max}"
    coming = "" if job.target == job.size else f", {job.target} when all hand-overs are done"
    lines = [f"{job.id} is {job.state} and has {job.size} workers of {bounds}{coming}", text]
    if text != job.reason:
        lines.append(job.reason)
    if path:
        nodes = [f"{node['node'] or 'all'} {node['share']:g}" for node in path]
        own = [] if job.share is None else [f"{job.id} {job.share:g}"]
        lines.append("fair share in devices: " + " > ".join([*nodes, *own]))
    return [*lines, f"what would change it: {change}"] if change else lines
