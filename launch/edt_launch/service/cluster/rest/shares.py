"""`/api/v1/shares`: the owners' tree."""

from dataclasses import replace
from math import inf
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import JSONResponse

from edt_launch.service.app.context import Context
from edt_launch.service.cluster.records import ShareRecord
from edt_launch.service.cluster.rest import schemas as cluster_schemas
from edt_launch.service.cluster.store import fresh
from edt_launch.service.errors import ConflictError, InvalidError, NotFoundError
from edt_launch.service.http.dependencies import PREVIEWED, ContextDep, CurrentAdmin, CurrentUser
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.jobs.rest import schemas, views
from edt_launch.service.jobs.rest.forecast import effects
from edt_launch.service.jobs.states import LIVE
from edt_launch.service.names import ROOT, USER

router = APIRouter(tags=["shares"])

NodeName = Annotated[
    str, Path(pattern=f"^({USER}|{ROOT})$", description=f"Name of a node; `{ROOT}` is the root.")
]

PLACES = ("/api/v1/shares", "/console/consumers")
"""Below these, a node is changed."""


@router.get("/shares", response_model=cluster_schemas.Shares)
def shares(context: ContextDep, user: CurrentUser) -> Any:
    """The owners' tree: who gets which share."""
    return {"shares": _shown(context)}


NEW = "new"
"""The version of a node that is not there yet."""


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
    own = "" if name == ROOT else name
    nodes = {node.name: node for node in context.store.shares.all()}
    known = nodes.get(own)
    if known is None and change.version not in (None, NEW):
        raise NotFoundError(f"{name} is not in the owners' tree any more", "add it again")
    before = known or replace(fresh(own), usage_at=context.clock())
    changes = {field: getattr(change, field) for field in change.model_fields_set - {"version"}}
    if "limit" in changes and changes["limit"] is None:
        changes["limit"] = inf
    after = replace(before, **{field: value for field, value in changes.items() if value is not None})
    _check(nodes, after)
    # What was left out is as it was seen just now.
    seen = before.version if known is None or change.version is None else change.version
    if seen != before.version:
        raise _changed(context, name)
    if dry_run:
        return {"changes": effects(context, shares=[after])}
    if not context.store.shares.put(after, seen):
        raise _changed(context, name)
    context.changed()
    return next(node for node in _shown(context) if node["name"] == own)


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
    nodes = {node.name: node for node in context.store.shares.all()}
    node = _removable(context, name, nodes)
    if version not in (None, node.version):
        raise _changed(context, name)
    if dry_run:
        changes = effects(context, shares=[fresh(name)])
        return JSONResponse({"changes": changes})
    context.store.shares.remove(name)
    context.changed()
    return Response(status_code=204)


def _removable(context: Context, name: str, nodes: dict[str, ShareRecord]) -> ShareRecord:
    if name == ROOT:
        raise InvalidError("the root cannot be removed", "remove another node")
    if name not in nodes:
        raise NotFoundError(f"there is no node {name!r}", "GET /api/v1/shares lists them")
    below = sorted(node.name for node in nodes.values() if node.parent == name)
    if below:
        raise ConflictError(
            f"{name} has others below it: {', '.join(below[:10])}", "move or remove them first"
        )
    live = context.store.jobs.page(JobQuery(states=LIVE, owners=[name], limit=10)).jobs
    if live:
        ids = ", ".join(job.id for job in live)
        raise ConflictError(f"{name} has jobs that have not ended: {ids}", "stop them first")
    return nodes[name]


def _shown(context: Context) -> list[dict[str, Any]]:
    return views.shares(context.store.shares.all(), context.store.jobs.live(), context.store.hosts.all())


def _changed(context: Context, name: str) -> ConflictError:
    """Somebody else was quicker."""
    last = context.store.audit.last([f"{place}/{name}" for place in PLACES])
    whose = "" if last is None else f" by {last.user}, {max(0.0, context.clock() - last.time):.0f} s ago"
    shown = "the root" if name == ROOT else name
    return ConflictError(f"{shown} was changed{whose}: that came first", "look at it as it is now")


def _check(nodes: dict[str, ShareRecord], node: ShareRecord) -> None:
    if node.guarantee > node.limit:
        raise InvalidError(
            f"guarantee: {node.guarantee:g} is more than limit, {node.limit:g}", "raise the limit"
        )
    if node.name == "":
        if node.parent is not None:
            raise InvalidError("parent: the root has none", "leave it out")
        return
    passed, parent = [node.name], node.parent
    while parent:
        if parent in passed:
            raise InvalidError(
                f"parent: {' below '.join([*passed, parent])}", "that is a circle; name another node"
            )
        if parent not in nodes:
            raise InvalidError(f"parent: there is no node {parent!r}", "add that one first")
        passed.append(parent)
        parent = nodes[parent].parent
