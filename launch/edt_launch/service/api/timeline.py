"""`/api/v1/timeline`: who had which device when."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic_core import to_json

from edt_launch.service import timeline as drawing
from edt_launch.service.api import schemas, views
from edt_launch.service.api.compressed import send
from edt_launch.service.api.dependencies import ContextDep, CurrentUser
from edt_launch.service.context import Context
from edt_launch.service.database.records import HolderRecord
from edt_launch.service.errors import InvalidError
from edt_launch.service.series import number
from edt_launch.service.states import State

router = APIRouter(tags=["cluster"])

JSON = "application/json"

LASTS = 3600.0
"""Seconds of a window that nothing is said about."""

LONGEST = 31 * 86400.0
"""Seconds of the longest window."""

PARTS = 120
"""Parts of a window, of each of which is told how many devices each owner had."""

LATEST = 5
"""Changes that are told in words."""

MOST_CHANGES = 20_000
"""Changes that are looked at, and bars that are shown: the newest."""

Time = Annotated[float | None, Query(ge=0, le=1e12)]


@router.get("/timeline", response_model=schemas.Timeline)
def timeline(
    request: Request,
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
    if since is None and until is None:
        make = partial(_latest, context, last, pixels)
        return send(request, context.shared.get(("timeline", last, pixels), make), JSON)
    now = context.clock()
    end = now if until is None else min(until, now)
    begin = max(0.0, end - last) if since is None else since
    if not 0 < end - begin <= LONGEST:
        raise InvalidError(
            f"since: {begin:.0f}, until: {end:.0f}: a window has more than 0 and at most {LONGEST:.0f} s",
            "choose others; until is never later than now",
        )
    return Response(_drawn(context, begin, end, pixels), media_type=JSON)


def _latest(context: Context, last: float, pixels: int) -> bytes:
    now = context.clock()
    return _drawn(context, max(0.0, now - last), now, pixels)


def _drawn(context: Context, since: float, until: float, pixels: int) -> bytes:
    # Not checked again: there is much of it.
    return to_json(draw(context, context.store.jobs.holders(), since, until, pixels))


def draw(
    context: Context, jobs: Sequence[HolderRecord], since: float, until: float, pixels: int
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
    used = drawing.usage(exact, owners, since, until, PARTS)
    latest = [one for one in changes if (one.before != one.after or one.lost) and since <= one.time <= until][
        -LATEST:
    ]
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
        "losses": [
            {"job": one.job, "time": one.time, "workers": one.lost}
            for one in changes
            if one.lost and since <= one.time <= until
        ],
        "owners": _owners(jobs, used, until - since),
        "changes": [
            {
                **{name: getattr(one, name) for name in ("time", "job", "owner", "reason")},
                "name": known[one.job].name if one.job in known else "",
                "from": one.before,
                "to": one.after,
                "hosts": views.held(one.devices),
                "leaving": views.held(one.leaving),
                "lost": one.lost,
            }
            for one in latest
        ],
        "complete": max(len(changes), len(transitions), len(found)) <= MOST_CHANGES,
    }


def _owners(
    jobs: Sequence[HolderRecord], used: Mapping[str, Sequence[float]], seconds: float
) -> list[dict[str, Any]]:
    """What each owner had, has, and would have by their fair share."""
    devices, shares = Counter[str](), defaultdict[str, float](float)
    for job in jobs:
        devices[job.owner] += sum(len(names) for _, names in (*job.held, *job.leaving))
        shares[job.owner] += job.share or 0.0
    present = {owner for owner in shares if devices[owner] or shares[owner]}
    return [
        {
            "owner": owner,
            "devices": devices[owner],
            "share": number(shares[owner]),
            "hours": sum(used.get(owner, ())) * seconds / PARTS / 3600,
            "use": [round(part, 3) for part in used.get(owner, [0.0] * PARTS)],
        }
        for owner in sorted(used.keys() | present)
    ]
