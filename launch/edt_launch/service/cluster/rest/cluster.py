"""`/api/v1/cluster`, `hosts` and `allocations`: the machines, who has which device, and draining."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from edt_launch.service.app.home import JOB_ID
from edt_launch.service.cluster import answers, service
from edt_launch.service.cluster import schemas as cluster_schemas
from edt_launch.service.http.dependencies import PREVIEWED, ContextDep, CurrentAdmin, CurrentUser, HostName
from edt_launch.service.http.schemas import UnixTime

router = APIRouter(tags=["cluster"])

Drained = cluster_schemas.Host | cluster_schemas.DrainChanges
Force = Annotated[
    bool, Query(description="Also end jobs that cannot save their work; they begin again elsewhere.")
]
DryRun = Annotated[bool, Query(description="Only say what it would change.")]


@router.get("/cluster", response_model=cluster_schemas.Cluster)
def cluster(context: ContextDep, user: CurrentUser) -> Any:
    """The machines, and how their devices are used."""
    return service.cluster(context)


@router.get("/hosts", response_model=cluster_schemas.HostsNow)
def hosts(context: ContextDep, user: CurrentUser) -> Any:
    """The machines, which job has which device, and how they are used."""
    return {"hosts": service.hosts(context)}


@router.post("/hosts/{name}/drain", response_model=Drained, dependencies=[PREVIEWED])
def drain(
    context: ContextDep, user: CurrentAdmin, name: HostName, dry_run: DryRun = False, force: Force = False
) -> Any:
    """Let a host's workers move away, and no new ones come.

    Jobs that cannot save their work stay until they end, unless `force` is given.
    """
    return service.set_draining(context, user, name, True, dry_run=dry_run, force=force)


@router.post("/hosts/{name}/undrain", response_model=Drained, dependencies=[PREVIEWED])
def undrain(context: ContextDep, user: CurrentAdmin, name: HostName, dry_run: DryRun = False) -> Any:
    """Let workers come back to a host."""
    return service.set_draining(context, user, name, False, dry_run=dry_run)


@router.get("/allocations", response_model=cluster_schemas.Allocations)
def allocations(
    context: ContextDep,
    user: CurrentUser,
    job: Annotated[str | None, Query(pattern=f"^{JOB_ID}$", description="Only this job's.")] = None,
    since: Annotated[UnixTime | None, Query(description="Only from this time on.")] = None,
    limit: Annotated[int, Query(ge=1, le=10_000, description="The newest of them.")] = 1000,
) -> Any:
    """Changes of what jobs have, oldest first."""
    return {
        "allocations": [answers.allocation(one) for one in context.store.history.newest(job, since, limit)]
    }
