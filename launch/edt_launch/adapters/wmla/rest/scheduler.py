"""`/scheduler`: applications in the manner of 2.x, their tasks, and what these print."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from edt_launch.adapters.wmla.answers import applications, files
from edt_launch.adapters.wmla.answers.views import Execution
from edt_launch.adapters.wmla.rest import lookup, texts
from edt_launch.adapters.wmla.rest.lookup import Found
from edt_launch.service.api.context import Context, Here, User
from edt_launch.service.database.records import UserRecord
from edt_launch.service.errors import InvalidError

router = APIRouter()

Json = dict[str, Any]

MOST = 1000
"""Applications of one answer."""

LastLines = Annotated[int | None, Query(alias="lastlines", ge=0, le=10**6)]
Number = Annotated[int, Query(ge=0, le=10**6)]


@router.get("/scheduler/applications")
def list_applications(
    here: Here, user: User, application: Annotated[str | None, Query(alias="applicationid")] = None
) -> list[Json]:
    """A user's applications, or everybody's for administrators, the newest first; or one."""
    found = _all(here, user, MOST) if application is None else [lookup.find(here, user, application)]
    return [applications.modern(one) for one in found]


@router.get("/scheduler/applications/{name}")
def show(found: Found) -> Json:
    """An application."""
    return applications.modern(found)


@router.put("/scheduler/applications/{name}/stop", status_code=204, response_class=Response)
def stop(here: Here, found: Found) -> None:
    """End an application for good; one that has ended stays as it is."""
    lookup.stop(here, found)


@router.get("/scheduler/applications/{name}/driver/logs/{stream}")
def driver_log(
    found: Found, stream: Literal["stdout", "stderr", "launcherlog"], last: LastLines = None
) -> StreamingResponse:
    """What the driver prints, or `edt-launch`."""
    is_launcher = stream == files.LAUNCHER
    path = found.files.launcher_log if is_launcher else files.main_output(found, stream)
    return texts.as_text([path], last)


@router.get("/scheduler/applications/{name}/executor/{number}/logs/{stream}")
def executor_log(
    found: Found, number: int, stream: Literal["stdout", "stderr"], last: LastLines = None
) -> StreamingResponse:
    """What an executor prints, counted from 1; nothing yet if the job may still start it."""
    if not 1 <= number <= 2**20:
        raise InvalidError(f"executor {number}: they are counted from 1")
    path = files.executor_output(found, number, stream)
    may_come = not found.job.has_ended and number <= found.job.max
    if not may_come and not path.exists():
        raise InvalidError(f"Executor {number} of {found.names.id} not found")
    return texts.as_text([path], last)


@router.get("/scheduler/engine/applications")
def list_engine_applications(
    here: Here,
    user: User,
    start: Number = 0,
    length: Number = MOST,
    sort: Annotated[str, Query(max_length=64)] = "-submit_time",
    state: Annotated[str | None, Query(max_length=64)] = None,
) -> list[Json]:
    """The same with the resources that they use; `start` and `length` lead through all of them."""
    is_plain = not state and sort == "-submit_time"
    found = [applications.engine(one) for one in _all(here, user, start + length if is_plain else None)]
    if state:
        found = [one for one in found if one["state"].lower() == state.lower()]
    field = sort.removeprefix("-")
    if found and field not in found[0]:
        raise InvalidError(f"sort: {field!r} is no field of an application")
    found.sort(key=lambda one: one[field], reverse=sort.startswith("-"))
    return found[start : start + min(length, MOST)]


@router.get("/scheduler/engine/applications/{name}")
def show_engine_application(found: Found) -> Json:
    """One of them."""
    return applications.engine(found)


def _all(here: Context, user: UserRecord, limit: int | None) -> list[Execution]:
    """The newest ones of a user, or of all."""
    page = here.store.jobs.page(owner=None if user.is_admin else user.name, limit=limit, newest=True)
    return lookup.with_names(here, page.jobs)
