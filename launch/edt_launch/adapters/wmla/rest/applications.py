"""Applications: of an instance group in Conductor's part, and below `/scheduler` in the manner of 2.x."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from edt_launch.adapters.wmla import identity
from edt_launch.adapters.wmla.answers import applications, files
from edt_launch.adapters.wmla.answers.consumers import Consumers
from edt_launch.adapters.wmla.answers.views import Execution, Json
from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.rest import lookup
from edt_launch.adapters.wmla.rest.lookup import Named
from edt_launch.adapters.wmla.rest.results import as_text
from edt_launch.adapters.wmla.rest.selecting import Selection, States
from edt_launch.cluster.hosts import LOCAL
from edt_launch.cluster.nvidia import Load, Meter
from edt_launch.service.app.context import Context
from edt_launch.service.errors import InvalidError
from edt_launch.service.http.dependencies import ContextDep, CurrentUser
from edt_launch.service.jobs.records import JobRecord

conductor, router = APIRouter(), APIRouter()


@conductor.get("/instances/{group}/applications")
async def list_of_group(
    request: Request, context: ContextDep, user: CurrentUser, group: str, state: States = ()
) -> list[Json]:
    """A user's applications in an instance group, or everybody's for administrators."""
    meter: Meter = request.app.state.meter

    def listed() -> list[Json]:
        newest = Selection(state=state, group=group).select(context, user, applications.summary)
        devices = [name for one in newest for host, names in one.job.held if host == LOCAL for name in names]
        loads, now = meter.loads(devices) if devices else {}, context.clock()
        return [applications.classic(one, _load(one.job, loads), now, context.url) for one in newest]

    return await context.reads.run(user.name, listed)


def _load(job: JobRecord, loads: Mapping[str, Load]) -> Load:
    """That of all of a job's GPUs on this machine."""
    own = [loads[name] for host, names in job.held if host == LOCAL for name in names if name in loads]
    return Load(sum(load.memory for load in own), float(sum(load.utilization for load in own)))


@conductor.get("/instances/{group}/applications/{name}/logs/{stream}/download")
def group_driver_log(execution: Named, stream: str) -> StreamingResponse:
    """What the driver prints."""
    return as_text([files.main_output(execution, _checked(stream))])


@conductor.get("/instances/{group}/applications/{name}/{executor}/logs/{stream}/download")
def group_executor_log(execution: Named, executor: str, stream: str) -> StreamingResponse:
    """What an executor prints."""
    if executor not in files.executors(execution):
        raise InvalidError(f"Executor {executor[:80]!r} not found")
    number = identity.number_of(executor) or 0
    path = files.executor_output(execution, number, _checked(stream))
    return as_text([path], rank=files.rank_in_log(execution, number))


def _checked(stream: str) -> str:
    if stream not in (files.STDOUT, files.STDERR):
        raise InvalidError(f"log {stream[:40]!r}: there are {files.STDOUT} and {files.STDERR}")
    return stream


LastLines = Annotated[int | None, Query(alias="lastlines", ge=0, le=10**6)]


@router.get("/scheduler/applications")
async def list_applications(
    context: ContextDep, user: CurrentUser, asked: Annotated[Selection, Depends()]
) -> list[Json]:
    """A user's applications, or everybody's for administrators, the newest first; or one."""

    def listed() -> list[Json]:
        return list(map(applications.modern, asked.select(context, user, applications.summary)))

    return await context.reads.run(user.name, listed)


@router.get("/scheduler/applications/{name}")
async def show(context: ContextDep, user: CurrentUser, execution: Named) -> Json:
    """An application."""
    return await context.reads.run(user.name, partial(applications.modern, execution))


@router.put("/scheduler/applications/{name}/stop", status_code=204, response_class=Response)
def stop(context: ContextDep, execution: Named) -> None:
    """End an application for good; one that has ended stays as it is."""
    lookup.stop(context, execution)


Stream = Literal["stdout", "stderr", "launcherlog"]


@router.get("/scheduler/applications/{name}/driver/logs/{stream}")
def driver_log(execution: Named, stream: Stream, last: LastLines = None) -> StreamingResponse:
    """What the driver prints, or `edt-launch`."""
    path = execution.files.launcher_log if stream == files.LAUNCHER else files.main_output(execution, stream)
    return as_text([path], last)


@router.get("/scheduler/applications/{name}/executor/{number}/logs/{stream}")
def executor_log(execution: Named, number: int, stream: Stream, last: LastLines = None) -> StreamingResponse:
    """What an executor prints, counted from 1; nothing yet if the job may still start it.

    Clients ask each process of a job for a launcher's log, but the driver only where there is one: what
    `edt-launch` prints is that of the first executor there, and that of all others is empty.
    """
    if not 1 <= number <= 2**20:
        raise InvalidError(f"executor {number}: they are counted from 1")
    if stream == files.LAUNCHER:
        is_first = number == 1 and execution.job.framework != Framework.ELASTIC
        return as_text([execution.files.launcher_log] if is_first else [], last)
    path, rank = files.executor_output(execution, number, stream), files.rank_in_log(execution, number)
    may_come = number <= execution.job.max and (rank is not None or not execution.job.has_ended)
    if not may_come and (rank is not None or not path.exists()):
        raise InvalidError(f"Executor {number} of {execution.names.id} not found")
    return as_text([path], last, rank)


@router.get("/scheduler/engine/applications")
def list_engine_applications(
    context: ContextDep, user: CurrentUser, asked: Annotated[Selection, Depends()]
) -> list[Json]:
    """The same with the resources that they use; `start` and `length` lead through all of them."""
    shown = _engine(context)
    return list(map(shown, asked.select(context, user, shown)))


@router.get("/scheduler/engine/applications/{name}")
def show_engine_application(context: ContextDep, execution: Named) -> list[Json]:
    """One of them, as a list of one."""
    return [_engine(context)(execution)]


def _engine(context: Context) -> Callable[[Execution], Json]:
    return partial(applications.engine, consumers=Consumers.of(context.store.shares.all()))
