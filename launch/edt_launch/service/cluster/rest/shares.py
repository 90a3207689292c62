"""`/api/v1/shares`: the owners' tree."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse

from edt_launch.service.cluster import schemas as cluster_schemas
from edt_launch.service.cluster import service
from edt_launch.service.http.dependencies import PREVIEWED, ContextDep, CurrentAdmin, CurrentUser, NodeName
from edt_launch.service.jobs import schemas

router = APIRouter(tags=["shares"])


@router.get("/shares", response_model=cluster_schemas.Shares)
def shares(context: ContextDep, user: CurrentUser) -> Any:
    """The owners' tree: who gets which share."""
    return {"shares": service.shares(context)}


@router.put(
    "/shares/{name}",
    response_model=cluster_schemas.OwnerShare | schemas.Changes,
    dependencies=[PREVIEWED],
)
def put(
    context: ContextDep,
    user: CurrentAdmin,
    name: NodeName,
    change: cluster_schemas.ShareChange,
    dry_run: Annotated[bool, Query(description="Only say what it would change.")] = False,
) -> Any:
    """Change a node of the tree, or add one; or say whose number of workers that would change (`dry_run`)."""
    return service.put_share(context, name, change, dry_run=dry_run)


@router.delete(
    "/shares/{name}",
    status_code=204,
    response_class=Response,
    responses={200: {"model": schemas.Changes}},
    dependencies=[PREVIEWED],
)
def remove(
    context: ContextDep,
    user: CurrentAdmin,
    name: NodeName,
    dry_run: Annotated[bool, Query(description="Only say what it would change.")] = False,
    version: Annotated[
        str | None, Query(max_length=16, description="That was seen: a node with another one is refused.")
    ] = None,
) -> Response:
    """Remove a node that has no others below it and no jobs; or say whose workers that would change.

    A user has the defaults from then on: weight 1, below the root.
    """
    changes = service.remove_share(context, name, version=version, dry_run=dry_run)
    if dry_run:
        return JSONResponse({"changes": changes})
    return Response(status_code=204)
