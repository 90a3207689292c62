"""Answers about jobs: pure functions from what is stored."""

from typing import Any

from edt_launch.core.scripts import script_name
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import may
from edt_launch.service.db.types import Held
from edt_launch.service.files.series import number
from edt_launch.service.jobs import schemas
from edt_launch.service.jobs.explanation import unreachable
from edt_launch.service.jobs.records import JobRecord

PRIVATE = dict.fromkeys(schemas.Job.model_fields.keys() - schemas.JobForAll.model_fields.keys())
"""What others than its owner and administrators see of a job: nothing."""

_LINKS = ("why", "logs", "events", "metrics", "results", "checkpoints")


def job(record: JobRecord, viewer: UserRecord | None = None) -> schemas.Job:
    """A job, as `viewer` may see it; None: all of it. Fields are those of its row, but for these."""
    url = f"/api/v1/jobs/{record.id}"
    derived = {
        "name": record.name or script_name(record.command),
        "note": note(record),
        "share": None if record.has_ended else number(record.share),
        "throughput": number(record.throughput),
        "loss": number(record.loss),
        "eta": None if record.has_ended else eta(record),
        "hosts": held(record.held),
        "urls": {"self": url, **{name: f"{url}/{name}" for name in _LINKS}},
    }
    shown = schemas.Job.model_validate(vars(record) | derived)
    return shown if viewer is None or may(viewer, record) else hidden(shown, record)


def hidden(shown: schemas.Job, record: JobRecord) -> schemas.Job:
    """A job as others see it: without the name of its script, too."""
    return shown.model_copy(update=PRIVATE | {"name": record.name})


def note(record: JobRecord) -> str:
    """What its state does not tell: trouble with files, bounds that count later, hosts that are lost."""
    if record.remark:
        return record.remark
    least, most = record.bounds or (record.min, record.max)
    late = []
    if record.min < least:
        late.append(f"min {record.min}: it was started with at least {least}")
    if record.max > most:
        late.append(f"max {record.max}: it was started with at most {most}")
    if record.max < least:
        late.append(f"max {record.max}: it was started with at least {least}")
    if late:
        return f"{', '.join(late)}; that counts when it is started again, by pause and resume for instance"
    return " ".join(unreachable(record))


def eta(record: JobRecord) -> float | None:
    """Seconds until a job has made all its steps, at its present pace; None if that is unknown."""
    pace = number(record.throughput)
    if record.step is None or not record.total_steps or not pace or pace < 0 or not record.size:
        return None
    return max(0.0, (record.total_steps - record.step) / pace)


def held(devices: Held) -> list[dict[str, Any]]:
    """Hosts and their devices."""
    return [{"host": host, "devices": names} for host, names in devices]
