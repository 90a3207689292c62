"""Conductor's part: the applications of an instance group, and what their processes print."""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse

from edt_launch.adapters.wmla import identity
from edt_launch.adapters.wmla.answers import applications, files
from edt_launch.adapters.wmla.answers.states import behind
from edt_launch.adapters.wmla.rest import lookup, texts
from edt_launch.adapters.wmla.rest.lookup import Found
from edt_launch.cluster.hosts import LOCAL
from edt_launch.cluster.nvidia import Load, Meter
from edt_launch.service.api.context import Here, User
from edt_launch.service.database.records import JobRecord
from edt_launch.service.errors import InvalidError

router = APIRouter()

MOST = 1000
"""Applications of one answer, the newest ones."""


@router.get("/instances/{group}/applications")
def list_applications(
    request: Request,
    here: Here,
    user: User,
    group: str,
    state: Annotated[str | None, Query(max_length=256)] = None,
) -> list[dict[str, Any]]:
    """A user's applications in an instance group, or everybody's for administrators."""
    states = None if state is None else frozenset().union(*map(behind, state.upper().split(",")))
    owner = None if user.is_admin else user.name
    page = here.store.jobs.page(states=states, owner=owner, limit=None, newest=True)
    in_group = (
        one for one in lookup.with_names(here, page.jobs) if identity.group_id(one.group) == group.lower()
    )
    found = list(islice(in_group, MOST))
    meter: Meter = request.app.state.meter
    devices = [name for one in found for host, names in one.job.held if host == LOCAL for name in names]
    loads = meter.loads(devices) if devices else {}
    url = str(request.base_url).rstrip("/")
    return [applications.classic(one, _load(one.job, loads), here.clock(), url) for one in found]


def _load(job: JobRecord, loads: Mapping[str, Load]) -> Load:
    """That of all of a job's GPUs on this machine."""
    own = [loads[name] for host, names in job.held if host == LOCAL for name in names if name in loads]
    return Load(sum(load.memory for load in own), float(sum(load.utilization for load in own)))


@router.get("/instances/{group}/applications/{name}/logs/{stream}/download")
def driver_log(found: Found, stream: str) -> StreamingResponse:
    """What the driver prints."""
    return texts.as_text([files.main_output(found, _checked(stream))])


@router.get("/instances/{group}/applications/{name}/{executor}/logs/{stream}/download")
def executor_log(found: Found, executor: str, stream: str) -> StreamingResponse:
    """What an executor prints."""
    if executor not in files.executors(found):
        raise InvalidError(f"Executor {executor[:80]!r} not found")
    number = identity.number_of(executor) or 0
    return texts.as_text([files.executor_output(found, number, _checked(stream))])


def _checked(stream: str) -> str:
    if stream not in (files.STDOUT, files.STDERR):
        raise InvalidError(f"log {stream[:40]!r}: there are {files.STDOUT} and {files.STDERR}")
    return stream
