"""The owners' tree as one decision works on it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import floor, inf, isfinite

from edt_launch.allocator.filling import Ints
from edt_launch.allocator.model import Owner, Policy, Usage

WEIGHTS = 1e-9, 1e9
"""Between which weights are, of owners and of jobs."""


class TreeError(ValueError):
    """The owners do not form a tree with sensible figures."""


@dataclass(slots=True, eq=False)
class TreeNode:
    """An owner, with the sums over everything below it that one pass computes.

    Attributes:
        budget: GPU-seconds that it might use, if it has; else None.
        position: of the node among all of them.
        path: the node itself and all above it, the root last.
        jobs: indices of the jobs right below it that take part in the pass.
        fixed: GPUs right below it that the pass may not move: of higher tiers, reserved for lower ones,
            withheld.
        withheld: GPUs that it does not use and keeps from others.
        withheld_below: those of it and of all below it.
        nonpreemptible: GPUs of the jobs below it that run and may not be suspended.
        least: what its admitted jobs need at least, fixed ones included.
        low, high: between which its share lies; `low` counts guarantees, too.
        share: real share.
        target: whole share.
        last: whole share that the last decision came to, fixed GPUs as they are now.
    """

    name: str
    parent: "TreeNode | None"
    weight: float
    guarantee: int
    limit: float
    lends: bool
    policy: Policy
    usage: Usage
    budget: float | None = None
    children: list["TreeNode"] = field(default_factory=list)
    position: int = 0
    path: tuple["TreeNode", ...] = ()
    jobs: list[int] = field(default_factory=list)
    fixed: int = 0
    withheld: int = 0
    withheld_below: int = 0
    nonpreemptible: int = 0
    least: int = 0
    low: float = 0.0
    high: float = 0.0
    share: float = 0.0
    target: int = 0
    last: int = 0


@dataclass(slots=True, eq=False)
class Layer:
    """The nodes of one depth, and those among whom each divides what it has: owners, then jobs.

    Attributes:
        nodes: of that depth.
        span: their positions.
        children: the nodes right below them.
        jobs: the jobs of the pass right below them.
        parents: positions of the nodes that the children and jobs are right below.
    """

    nodes: list[TreeNode]
    span: slice
    children: list[TreeNode]
    jobs: Ints
    parents: Ints


def grow(owners: Sequence[Owner], strangers: Iterable[str], capacity: int) -> list[TreeNode]:
    """All nodes, those nearer to the root first, and each node's children one after the other.

    Args:
        owners: with or without the root.
        strangers: owners of jobs; those that are not in the tree hang below the root with weight 1.
        capacity: GPUs, which limit the root.

    Raises:
        TreeError: two owners have one name, a parent is missing, an owner is its own ancestor, or a figure is
            out of range.
    """
    nodes: dict[str, TreeNode] = {}
    for owner in owners:
        _check(owner)
        if owner.name in nodes:
            raise TreeError(f"two owners are called {owner.name!r}: names have to be unique")
        nodes[owner.name] = _node(owner)
    parents = {owner.name: owner.parent for owner in owners}
    if "" not in nodes:
        nodes[""] = _node(Owner("", None))
    for name in sorted(set(strangers) - nodes.keys()):
        nodes[name] = _node(Owner(name))
    for name, node in nodes.items():
        if name:
            parent = nodes.get(parents.get(name) or "")
            if parent is None:
                raise TreeError(
                    f"owner {name!r} is below {parents[name]!r}, which does not exist: add it first"
                )
            node.parent = parent
            parent.children.append(node)
    root = nodes[""]
    root.limit = min(root.limit, capacity)
    root.path = (root,)
    ordered = [root]
    for position, node in enumerate(ordered):
        node.position = position
        node.children.sort(key=lambda child: child.name)
        for child in node.children:
            child.path = (child, *node.path)
            ordered.append(child)
    if len(ordered) < len(nodes):
        lost = min(nodes.keys() - {node.name for node in ordered})
        raise TreeError(f"owner {lost!r} is below itself: give one of its parents another parent")
    return ordered


def _node(owner: Owner) -> TreeNode:
    limit = floor(owner.limit) if owner.limit < inf else inf
    guarantee, budget = floor(owner.guarantee), None
    if owner.is_spent:
        limit, guarantee, budget = 0, 0, owner.budget
    return TreeNode(
        owner.name, None, owner.weight, guarantee, limit, owner.lends, owner.policy, owner.usage, budget
    )


def _check(owner: Owner) -> None:
    if not WEIGHTS[0] <= owner.weight <= WEIGHTS[1]:
        name, value, least = "weight", owner.weight, "from {:g} to {:g}".format(*WEIGHTS)
    elif not 0 <= owner.guarantee < inf:
        name, value, least = "guarantee", owner.guarantee, "0 or more, and finite"
    elif not owner.limit >= 0:
        name, value, least = "limit", owner.limit, "0 or more"
    elif not owner.budget >= 0:
        name, value, least = "budget", owner.budget, "0 or more"
    elif not owner.half_life > 0:
        name, value, least = "half-life", owner.half_life, "above 0"
    elif not 0 <= owner.usage.service < inf:
        name, value, least = "remembered service", owner.usage.service, "0 or more, and finite"
    elif not 0 <= owner.usage.entitlement < inf:
        name, value, least = "remembered entitlement", owner.usage.entitlement, "0 or more, and finite"
    elif not 0 <= owner.usage.attained < inf:
        name, value, least = "use so far", owner.usage.attained, "0 or more, and finite"
    elif not isfinite(owner.usage.at):
        name, value, least = "usage remembered up to", owner.usage.at, "finite"
    else:
        return
    raise TreeError(f"owner {owner.name!r} has {name} {value:g}: it has to be {least}")
