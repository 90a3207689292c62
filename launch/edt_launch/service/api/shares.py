"""`/api/v1/shares`: the owners' tree."""

from dataclasses import replace
from math import inf
from typing import Annotated, Any

from fastapi import APIRouter, Path

from edt_launch.service.api import schemas, views
from edt_launch.service.api.dependencies import ContextDep, CurrentAdmin, CurrentUser
from edt_launch.service.database.records import ShareRecord
from edt_launch.service.errors import InvalidError
from edt_launch.service.names import ROOT, USER

router = APIRouter(tags=["shares"])

NodeName = Annotated[
    str, Path(pattern=f"^({USER}|{ROOT})$", description=f"Name of a node; `{ROOT}` is the root.")
]


@router.get("/shares", response_model=schemas.Shares)
def shares(context: ContextDep, user: CurrentUser) -> Any:
    """The owners' tree: who gets which share."""
    return {"shares": views.shares(context.store.shares.all(), context.store.jobs.live())}


@router.put("/shares/{name}", response_model=schemas.OwnerShare)
def put(context: ContextDep, user: CurrentAdmin, name: NodeName, change: schemas.ShareChange) -> Any:
    """Change a node of the tree, or add one."""
    own = "" if name == ROOT else name
    nodes = {node.name: node for node in context.store.shares.all()}
    before = nodes.get(own) or ShareRecord(own, usage_at=context.clock())
    changes = {field: getattr(change, field) for field in change.model_fields_set}
    if "limit" in changes and changes["limit"] is None:
        changes["limit"] = inf
    after = replace(before, **{field: value for field, value in changes.items() if value is not None})
    _check(nodes, after)
    context.store.shares.put(after)
    context.changed()
    found = views.shares(context.store.shares.all(), context.store.jobs.live())
    return next(node for node in found if node["name"] == own)


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
