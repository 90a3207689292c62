"""What would be lost if the workers of a job that cannot save its work were ended."""

from collections.abc import Iterable
from datetime import timedelta

from edt_launch.service.jobs.records import JobRecord


def loss(job: JobRecord, now: float) -> str:
    """What would be lost with the present workers of a job; empty if nothing would, or somebody agreed."""
    if not job.would_lose:
        return ""
    lasted = timedelta(seconds=max(0, round(now - (job.running_since or now))))
    return f"{job.id} has run for {lasted} and cannot save its work"


def staying(jobs: Iterable[JobRecord], host: str, now: float) -> dict[str, str]:
    """The jobs that stay on a host that is drained until they end, and what would be lost, by their ids."""
    there = (job for job in jobs if any(name == host for name, _ in job.held))
    return {job.id: text for job in there if (text := loss(job, now))}
