"""What REST and pages do with hosts and shares."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf
from typing import Any

from edt_launch.core.text.durations import duration
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.app.context import Context
from edt_launch.service.bus import Topic
from edt_launch.service.cluster import answers
from edt_launch.service.cluster.records import ShareRecord
from edt_launch.service.cluster.schemas import ShareChange
from edt_launch.service.cluster.store import fresh
from edt_launch.service.errors import ConflictError, InvalidError, NotFoundError
from edt_launch.service.jobs.forecast.forecast import effects
from edt_launch.service.jobs.forecast.losing import staying
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.jobs.states import LIVE
from edt_launch.service.names import ROOT

PLACES = ("/api/v1/shares", "/shares", "/console/consumers")
"""Below these, a node is changed, or was in an earlier version."""


NEW = "new"
"""The version of a node that is not there yet."""


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


def _changed(context: Context, name: str) -> ConflictError:
    """Somebody else was quicker."""
    last = context.store.audit.last([*(f"{place}/{name}" for place in PLACES), f"/new-share {name}"])
    whose = "" if last is None else f" by {last.user}, {duration(context.clock() - last.time)} ago"
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


def hosts(context: Context) -> list[dict[str, Any]]:
    """The machines, which job has which device, and how they are used."""
    known, machines = context.store.hosts.all(), context.machines
    loads = machines.loads(known, context.clock)
    shown = answers.hosts(known, context.store.jobs.holders(), context.store.jobs.suspended())
    return [
        view
        | {
            "heard": machines.heard if host.is_up else host.changed or None,
            "jobs": len({device["job"] for device in view["devices"]} - {None}),
            "load": loads.get(host.name),
        }
        for host, view in zip(known, shown, strict=True)
    ]


def cluster(context: Context) -> dict[str, Any]:
    """The machines, and how their devices are used."""
    shown = answers.cluster(
        context.store.hosts.all(), context.store.jobs.holders(), context.store.jobs.suspended()
    )
    return {**shown, "waiting": context.machines.waiting}


def set_draining(
    context: Context,
    user: UserRecord,
    name: str,
    is_draining: bool,
    *,
    dry_run: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Let a host's workers move away, and no new ones come, or end that; or say what it changes (`dry_run`).

    Jobs that cannot save their work stay until they end, unless `force` is given.
    """
    store, now = context.store, context.clock()
    hosts = [host for host in store.hosts.all() if host.name == name]
    if not hosts:
        raise NotFoundError(f"there is no host {name!r}", "GET /api/v1/hosts lists them: `edt hosts`")
    kept = staying(store.jobs.live(), name, now) if is_draining else {}
    stays = [] if force else list(kept.values())
    if dry_run:
        ended = [replace(job, may_lose=True) for job in store.jobs.some(kept).values() if force]
        then = [replace(host, is_draining=is_draining) for host in hosts]
        return {"changes": effects(context, ended, then), "staying": stays}
    if force:
        store.jobs.record({job: {"may_lose": True} for job in kept})
    store.hosts.drain(name, is_draining, f"drained by {user.name}" if is_draining else "", now)
    context.changed(Topic.HOSTS)
    present = [host for host in store.hosts.all() if host.name == name]
    return answers.hosts(present, store.jobs.holders())[0] | {"staying": stays}


def shares(context: Context) -> list[dict[str, Any]]:
    """The owners' tree: who gets which share."""
    return answers.shares(context.store.shares.all(), context.store.jobs.live(), context.store.hosts.all())


def put_share(context: Context, name: str, change: ShareChange, *, dry_run: bool = False) -> dict[str, Any]:
    """Change a node of the tree, or add one; or say whose number of workers that would change (`dry_run`)."""
    own = "" if name == ROOT else name
    nodes = {node.name: node for node in context.store.shares.all()}
    known = nodes.get(own)
    if known is None and change.version not in (None, NEW):
        raise NotFoundError(f"{name} is not in the owners' tree any more", "add it again")
    before = known or replace(fresh(own), usage_at=context.clock())
    changes = {field: getattr(change, field) for field in change.model_fields_set - {"version"}}
    for field in ("limit", "budget"):
        if field in changes and changes[field] is None:
            changes[field] = inf
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
    return next(node for node in shares(context) if node["name"] == own)


def remove_share(
    context: Context, name: str, *, version: str | None = None, dry_run: bool = False
) -> Sequence[dict[str, Any]]:
    """Remove a node of the tree; with `dry_run`, the changes that this would make."""
    nodes = {node.name: node for node in context.store.shares.all()}
    node = _removable(context, name, nodes)
    if version not in (None, node.version):
        raise _changed(context, name)
    if dry_run:
        return effects(context, shares=[fresh(name)])
    context.store.shares.remove(name)
    context.changed()
    return []
