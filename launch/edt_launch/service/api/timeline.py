"""`/api/v1/timeline`: who had which device when."""

from collections.abc import Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from pydantic_core import to_json

from edt_launch.service import timeline as drawing
from edt_launch.service.api import schemas
from edt_launch.service.api.dependencies import ContextDep, CurrentUser
from edt_launch.service.context import Context
from edt_launch.service.database.records import HolderRecord
from edt_launch.service.errors import InvalidError
from edt_launch.service.states import State

router = APIRouter(tags=["cluster"])

LASTS = 3600.0
"""Seconds of a window that nothing is said about."""

LONGEST = 31 * 86400.0
"""Seconds of the longest window."""

MOST_CHANGES = 20_000
"""Changes that are looked at, and bars that are shown: the newest."""

Time = Annotated[float | None, Query(ge=0, le=1e12)]


@router.get("/timeline", response_model=schemas.Timeline)
def timeline(
    context: ContextDep,
    user: CurrentUser,
    since: Time = None,
    until: Time = None,
    last: Annotated[
        float, Query(gt=0, le=LONGEST, description="Seconds, where `since` is not given.")
    ] = LASTS,
    pixels: Annotated[
        int, Query(ge=100, le=10_000, description="Width of the picture: what is shorter is merged.")
    ] = 1200,
) -> Response:
    """Who had which device when; by default in the last hour. No longer than 31 days."""
    now = context.clock()
    end = now if until is None else min(until, now)
    begin = max(0.0, end - last) if since is None else since
    if not 0 < end - begin <= LONGEST:
        raise InvalidError(
            f"since: {begin:.0f}, until: {end:.0f}: a window has more than 0 and at most {LONGEST:.0f} s",
            "choose others; until is never later than now",
        )
    picture = draw(context, context.store.jobs.holders(), begin, end, pixels)
    return Response(to_json(picture), media_type="application/json")  # not checked again: there is much of it


def draw(
    context: Context, jobs: Iterable[HolderRecord], since: float, until: float, pixels: int
) -> dict[str, Any]:
    """The picture of a window, like `schemas.Timeline`; `jobs` are those that have not ended."""
    store = context.store
    changes = store.history.window(since, until, MOST_CHANGES + 1)
    exact = drawing.bars(changes, since, until)
    found = drawing.merged(exact, (until - since) / pixels)
    hosts = store.hosts.all()
    present = [(host.name, device) for host in hosts for device in host.devices]
    usable = [(host.name, device) for host in hosts if host.state == "up" for device in host.devices]
    slots = [*present, *sorted({bar.slot for bar in found} - set(present))]
    transitions = store.jobs.transitions_since(since, MOST_CHANGES + 1)
    queued = [job.id for job in jobs if job.state is State.QUEUED and job.submitted <= until]
    waits = drawing.waiting(transitions, queued, since, until)
    resized = drawing.resizes(changes, since, until)
    ids = sorted({bar.job for bar in found if bar.job} | {one.job for one in resized})
    known, owners = store.jobs.some(ids), {change.job: change.owner for change in changes}
    rows, numbers = ({thing: at for at, thing in enumerate(things)} for things in (slots, ids))
    return {
        "since": since,
        "until": until,
        "rows": [{"host": host, "device": device} for host, device in slots],
        "jobs": [
            {
                "id": job,
                "name": known[job].name if job in known else "",
                "owner": owners[job],
                "number": known[job].number if job in known else 0,
            }
            for job in ids
        ],
        "bars": [(rows[bar.slot], numbers.get(bar.job), bar.start, bar.end) for bar in found[-MOST_CHANGES:]],
        "idle": [
            (rows[bar.slot], bar.start, bar.end)
            for bar in drawing.merged(drawing.idle(exact, usable, waits), (until - since) / pixels)
        ][:MOST_CHANGES],
        "resizes": [
            {"job": one.job, "time": one.time, "from": one.before, "to": one.after} for one in resized
        ],
        "complete": max(len(changes), len(transitions), len(found)) <= MOST_CHANGES,
    }
