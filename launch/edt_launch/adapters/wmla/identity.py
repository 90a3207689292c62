"""The ids that WMLA's clients know a job by."""

import re
import uuid
from datetime import UTC, datetime

from edt_launch.adapters.wmla.running.layout import driver_id
from edt_launch.service.jobs.records import ExecRecord

_GROUPS = uuid.UUID("5b7b4e63-0f0c-4d0c-9f0e-0b8a5f3f9d11")


def classic(number: int, user: str, now: float, unique: uuid.UUID) -> ExecRecord:
    """As 1.2.x names the job with that number: `Admin-2518647360655711-224680126`; `now` is unix time."""
    stamp = _stamp(now)
    name = f"{user}-{int(now * 1e6):016d}-{unique.int % 10**9:09d}"
    return ExecRecord(number, name, driver_id(stamp, unique), f"app-{stamp}-0001-{unique}", "")


def modern(number: int, now: float, unique: uuid.UUID) -> ExecRecord:
    """As 2.x names it: `wmla-398`, its application likewise."""
    name = f"wmla-{number}"
    return ExecRecord(number, name, driver_id(_stamp(now), unique), name, "")


def group_id(name: str) -> str:
    """The id of an instance group, always the same for a name."""
    return str(uuid.uuid5(_GROUPS, name))


def number_of(executor: str) -> int | None:
    """Which executor an id such as `2-<uuid>` names; None if it is none."""
    match = re.fullmatch(r"([1-9][0-9]{0,8})-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", executor)
    return None if match is None else int(match[1])


def _stamp(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y%m%d%H%M%S")
