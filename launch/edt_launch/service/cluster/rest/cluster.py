"""`/api/v1/cluster`, `hosts` and `allocations`: the machines, who has which device, and draining."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query

from edt_launch.cluster.allocation import HOST
from edt_launch.service.app.context import Context
from edt_launch.service.app.home import JOB_ID
from edt_launch.service.bus import Topic
from edt_launch.service.cluster.rest import schemas as cluster_schemas
from edt_launch.service.errors import NotFoundError
from edt_launch.service.http.dependencies import PREVIEWED, ContextDep, CurrentAdmin, CurrentUser
from edt_launch.service.jobs.losing import staying
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.rest import views
from edt_launch.service.jobs.rest.forecast import effects

router = APIRouter(tags=["cluster"])

Drained = cluster_schemas.Host | cluster_schemas.DrainChanges
Force = Annotated[
    bool, Query(description="Also end jobs that cannot save their work; they begin again elsewhere.")
]
DryRun = Annotated[bool, Query(description="Only say what it would change.")]

HostName = Annotated[str, Path(max_length=255, pattern=f"^{HOST}$", description="Name of a host.")]


@router.get("/cluster", response_model=cluster_schemas.Cluster)
def cluster(context: ContextDep, user: CurrentUser) -> Any:
    """The machines, and how their devices are used."""
    return views.cluster(
        context.store.hosts.all(), context.store.jobs.holders(), context.store.jobs.suspended()
    )


@router.get("/hosts", response_model=cluster_schemas.HostsNow)
def hosts(context: ContextDep, user: CurrentUser) -> Any:
    """The machines, which job has which device, and how they are used."""
    known, machines = context.store.hosts.all(), context.machines
    loads = machines.loads(known, context.clock)
    shown = views.hosts(known, context.store.jobs.holders(), context.store.jobs.suspended())
    return {
        "hosts": [
            view
            | {
                "changed": host.changed,
                "heard": machines.heard if host.is_up else host.changed or None,
                "jobs": len({device["job"] for device in view["devices"]} - {None}),
                "load": loads.get(host.name),
            }
            for host, view in zip(known, shown, strict=True)
        ]
    }


@router.post("/hosts/{name}/drain", response_model=Drained, dependencies=[PREVIEWED])
def drain(
    context: ContextDep, user: CurrentAdmin, name: HostName, dry_run: DryRun = False, force: Force = False
) -> Any:
    """Let a host's workers move away, and no new ones come.

    Jobs that cannot save their work stay until they end, unless `force` is given.
    """
    kept = staying(context.store.jobs.live(), name, context.clock())
    if dry_run:
        ended = [replace(job, may_lose=True) for job in context.store.jobs.some(kept).values() if force]
        return _foreseen(context, name, True, ended) | {"staying": [] if force else list(kept.values())}
    if force:
        context.store.jobs.record({job: {"may_lose": True} for job in kept})
    return _drain(context, name, True, f"drained by {user.name}")


@router.post("/hosts/{name}/undrain", response_model=Drained, dependencies=[PREVIEWED])
def undrain(context: ContextDep, user: CurrentAdmin, name: HostName, dry_run: DryRun = False) -> Any:
    """Let workers come back to a host."""
    return _foreseen(context, name, False) if dry_run else _drain(context, name, False, "")


@router.get("/allocations", response_model=cluster_schemas.Allocations)
def allocations(
    context: ContextDep,
    user: CurrentUser,
    job: Annotated[str | None, Query(pattern=f"^{JOB_ID}$", description="Only this job's.")] = None,
    since: Annotated[float | None, Query(ge=0, le=1e12, description="Only from this time on.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000, description="The newest of them.")] = 1000,
) -> Any:
    """Changes of what jobs have, oldest first."""
    return {"allocations": [views.allocation(one) for one in context.store.history.newest(job, since, limit)]}


def _foreseen(
    context: Context, name: str, is_draining: bool, jobs: Sequence[JobRecord] = ()
) -> dict[str, Any]:
    """Whose number of workers would change if a host was draining, or not, and `jobs` were like that."""
    hosts = [host for host in context.store.hosts.all() if host.name == name]
    changed = [replace(host, is_draining=is_draining) for host in hosts]
    if not changed:
        raise _no_host(name)
    return {"changes": effects(context, jobs, changed), "staying": []}


def _no_host(name: str) -> NotFoundError:
    return NotFoundError(f"there is no host {name!r}", "GET /api/v1/hosts lists them: `edt hosts`")


def _drain(context: Context, name: str, is_draining: bool, reason: str) -> Any:
    if not context.store.hosts.drain(name, is_draining, reason, context.clock()):
        raise _no_host(name)
    context.changed(Topic.HOSTS)
    hosts = [host for host in context.store.hosts.all() if host.name == name]
    kept = staying(context.store.jobs.live(), name, context.clock()) if is_draining else {}
    return views.hosts(hosts, context.store.jobs.holders())[0] | {"staying": list(kept.values())}
