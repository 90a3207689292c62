"""The ids that WMLA's clients know a job by."""

import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from edt_launch.adapters.wmla.running.layout import driver_id

_GROUPS = uuid.UUID("5b7b4e63-0f0c-4d0c-9f0e-0b8a5f3f9d11")


@dataclass(frozen=True)
class Ids:
    """What a job is called.

    Attributes:
        exec: in `/execs`.
        driver: in Conductor's part, as `submissionId`; and its driver process.
        app: its application.
    """

    exec: str
    driver: str
    app: str


def classic(user: str, now: float, unique: uuid.UUID) -> Ids:
    """As 1.2.x names a job: `Admin-2518647360655711-224680126`.

    Args:
        user: who submits it.
        now: unix time.
        unique: what no other job has.
    """
    stamp = _stamp(now)
    return Ids(
        f"{user}-{int(now * 1e6):016d}-{unique.int % 10**9:09d}",
        driver_id(stamp, unique),
        f"app-{stamp}-0001-{unique}",
    )


def modern(number: int, now: float, unique: uuid.UUID) -> Ids:
    """As 2.x names the job with that number: `wmla-398`, its application likewise."""
    return Ids(f"wmla-{number}", driver_id(_stamp(now), unique), f"wmla-{number}")


def group_id(name: str) -> str:
    """The id of an instance group, always the same for a name."""
    return str(uuid.uuid5(_GROUPS, name))


def number_of(executor: str) -> int | None:
    """Which executor an id such as `2-<uuid>` names; None if it is none."""
    found = re.fullmatch(r"([1-9][0-9]{0,8})-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", executor)
    return None if found is None else int(found[1])


def _stamp(now: float) -> str:
    return datetime.fromtimestamp(now, UTC).strftime("%Y%m%d%H%M%S")
