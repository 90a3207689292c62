"""What submitting a job would change: the allocator is asked twice, without the job and with it."""

from typing import Any

from edt_launch.allocator.decide import decide
from edt_launch.allocator.model import Cluster, load
from edt_launch.service.api import views
from edt_launch.service.database import mapping
from edt_launch.service.database.records import JobRecord
from edt_launch.service.database.store import Store
from edt_launch.service.settings import Settings
from edt_launch.service.states import State, Wanted
from edt_launch.service.submission import Submission, record_of

NEW = "jaaaaaaaa"
"""Stands for the id that the job does not have yet."""

_WANTS = frozenset({State.QUEUED, State.STARTING, State.RUNNING})


def forecast(store: Store, settings: Settings, submission: Submission, now: float) -> dict[str, Any]:
    """The job as it would be, and all jobs whose number of workers would be another one because of it."""
    new = record_of(submission, NEW, now)
    present = [job for job in store.jobs.live() if job.state in _WANTS and job.wanted is Wanted.RUN]
    records = {job.id: job for job in [*present, new]}
    cluster = Cluster(
        tuple(map(mapping.host, store.hosts.all())),
        tuple(mapping.owners(store.shares.all(), {job.owner for job in records.values()})),
        mapping.options(settings),
        load(store.memory.get(mapping.MEMORY, {})),
    )
    jobs = {job_id: mapping.job(record, settings.protected) for job_id, record in records.items()}
    without, _ = decide(now, cluster, [job for job_id, job in jobs.items() if job_id != NEW])
    with_it, reasons = decide(now, cluster, list(jobs.values()))
    changes = [
        _change(record, without.targets.get(job_id, 0), with_it.targets.get(job_id, 0), reasons[job_id].text)
        for job_id, record in records.items()
        if job_id == NEW or without.targets.get(job_id, 0) != with_it.targets.get(job_id, 0)
    ]
    job = views.job(new) | {"id": "", "urls": {}, "target": with_it.targets.get(NEW, 0)}
    return {"job": job | {"reason": reasons[NEW].text, "share": reasons[NEW].share}, "changes": changes}


def _change(job: JobRecord, before: int, after: int, reason: str) -> dict[str, Any]:
    is_new = job.id == NEW
    return {
        "job": None if is_new else job.id,
        "owner": job.owner,
        "name": job.name,
        "from": before,
        "to": after,
        "reason": reason,
    }
