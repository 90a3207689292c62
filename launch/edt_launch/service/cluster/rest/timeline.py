"""`/api/v1/timeline`: who had which device when."""

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from edt_launch.cluster.allocation import HOST
from edt_launch.service.cluster import pictures
from edt_launch.service.cluster import schemas as cluster_schemas
from edt_launch.service.cluster.pictures import PIXELS, Json, latest
from edt_launch.service.errors import InvalidError
from edt_launch.service.http.compressed import compressed, send
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.http.schemas import UnixTime

router = APIRouter(tags=["cluster"])


JSON = "application/json"

LASTS = 3600.0
"""Seconds of a window that nothing is said about."""

LONGEST = 31 * 86400.0
"""Seconds of the longest window."""


@router.get("/timeline", response_model=cluster_schemas.Timeline)
async def timeline(
    request: Request,
    context: ContextDep,
    user: CurrentUser,
    since: UnixTime | None = None,
    until: UnixTime | None = None,
    last: Annotated[
        float, Query(gt=0, le=LONGEST, description="Seconds, where `since` is not given.")
    ] = LASTS,
    pixels: Annotated[
        int, Query(ge=100, le=10_000, description="Width of the picture: what is shorter is merged.")
    ] = PIXELS,
    rows: Annotated[
        Literal["slots", "hosts"], Query(description="`hosts`: how many devices of each were used.")
    ] = "slots",
    host: Annotated[
        str | None, Query(max_length=255, pattern=f"^{HOST}$", description="Only the devices of this one.")
    ] = None,
) -> Response:
    """Who had which device when; by default in the last hour. No longer than 31 days."""
    if since is None and until is None:
        picture = await latest(context, last, pixels)
        key = ("timeline", last, pixels, rows, host)
        # Not checked again: there is much of it.
        make = partial(_compressed, picture, rows, host)
        return send(request, await context.shared.get(key, make), JSON)
    now = context.clock()
    end = now if until is None else min(until, now)
    begin = max(0.0, end - last) if since is None else since
    if not 0 < end - begin <= LONGEST:
        raise InvalidError(
            f"since: {begin:.0f}, until: {end:.0f}: a window has more than 0 and at most {LONGEST:.0f} s",
            "choose others; until is never later than now",
        )
    picture = await run_in_threadpool(pictures.drawn, context, begin, end, pixels)
    return Response(to_json(_part(picture, rows, host)), media_type=JSON)


def _compressed(picture: Json, rows: str, host: str | None) -> bytes:
    return compressed(to_json(_part(picture, rows, host)))


def _part(picture: Json, rows: str, host: str | None) -> Json:
    """A picture with rows of hosts, or of slots, all or those of one host."""
    if rows == "hosts":
        return picture | {"rows": [], "bars": [], "idle": []}
    if host is None:
        return picture | {"bands": []}
    places = [at for at, row in enumerate(picture["rows"]) if row["host"] == host]
    new = {at: number for number, at in enumerate(places)}
    return picture | {
        "bands": [],
        "rows": [picture["rows"][at] for at in places],
        "bars": [(new[row], *rest) for row, *rest in picture["bars"] if row in new],
        "idle": [(new[row], *rest) for row, *rest in picture["idle"] if row in new],
    }
