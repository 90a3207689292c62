"""Which devices a pool holds of a Ray cluster, and how many more it asks for. Pure.

A device is held before a job may have it, so that nobody else on the cluster is given it. Nothing is held
that no job could use; what is held is kept for a while after its last use, as the next job often comes soon.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from edt_launch.cluster.ray.nodes import RayNode

IDLE_LIMIT = 300.0
"""Seconds without use after which a device is given back, so that the autoscaler can remove its node."""


@dataclass(frozen=True, order=True)
class Device:
    """A device of a node, by the node's id."""

    node: str
    name: str


@dataclass(frozen=True)
class Decision:
    """What to do now.

    Attributes:
        hold: how many more devices to hold, by the node's id.
        release: devices to give back.
        lacking: devices that jobs could use and no node has.
        request: devices that the cluster should have in all, those of others included; 0 for no request.
    """

    hold: Mapping[str, int] = field(default_factory=dict)
    release: frozenset[Device] = frozenset()
    lacking: int = 0
    request: int = 0


@dataclass(frozen=True)
class Memory:
    """Since when devices that are held have not been used, in seconds of a clock that only goes forwards."""

    unused_since: Mapping[Device, float] = field(default_factory=dict)


def decide(
    now: float,
    nodes: Collection[RayNode],
    held: Collection[Device],
    wanted: int,
    used: Collection[Device] = (),
    promised: Mapping[str, int] | None = None,
    memory: Memory = Memory(),
    idle_limit: float = IDLE_LIMIT,
) -> tuple[Decision, Memory]:
    """Decide, and what to remember for the next time.

    Args:
        now: the time.
        nodes: that are alive.
        held: devices that are held, on these nodes or others.
        wanted: devices that jobs could use, those that they have included.
        used: devices that jobs have.
        promised: devices that are just being held, by the node's id.
        memory: of the last time.
        idle_limit: seconds for which an unused device is kept.
    """
    coming = promised or {}
    staying = {node.id: node for node in nodes if not node.is_draining}
    counts = Counter(device.node for device in held if device.node in staying)
    counts.update({node: count for node, count in coming.items() if node in staying})
    short = max(0, wanted - counts.total())
    hold = _chosen(staying.values(), counts, coming, short)
    lacking = short - sum(hold.values())
    unused = _unused_since(now, held, used, memory)
    release = {device for device in unused if device.node not in staying}
    spare = counts.total() - wanted
    idle = [device for device in unused if device not in release and now - unused[device] >= idle_limit]
    # Nodes with the fewest devices first: the sooner one has none, the sooner it can go.
    release |= set(sorted(idle, key=lambda device: (counts[device.node], device))[: max(0, spare)])
    others = _used_by_others(nodes, held, coming)
    request = others + wanted if lacking else 0
    kept = {device: since for device, since in unused.items() if device not in release}
    return Decision(hold, frozenset(release), lacking, request), Memory(kept)


def _chosen(
    nodes: Iterable[RayNode], counts: Mapping[str, int], coming: Mapping[str, int], short: int
) -> dict[str, int]:
    """How many of `short` devices to hold of which nodes: of few nodes, of those already in use first."""
    hold: dict[str, int] = {}
    free = {node.id: node.free - coming.get(node.id, 0) for node in nodes}
    for id_ in sorted(free, key=lambda id_: (-counts.get(id_, 0), -free[id_], id_)):
        count = min(short, free[id_])
        if count > 0:
            hold[id_] = count
            short -= count
    return hold


def _unused_since(
    now: float, held: Collection[Device], used: Collection[Device], memory: Memory
) -> dict[Device, float]:
    in_use = frozenset(used)
    return {device: memory.unused_since.get(device, now) for device in held if device not in in_use}


def _used_by_others(nodes: Iterable[RayNode], held: Iterable[Device], coming: Mapping[str, int]) -> int:
    ours = Counter(device.node for device in held)
    # What is just being held may count as free, or not yet: it is not somebody else's.
    return sum(max(0, node.total - node.free - ours[node.id] - coming.get(node.id, 0)) for node in nodes)


def reason(lacking: int, per_node: int, is_scaled: bool) -> str:
    """Why jobs wait for devices that the cluster does not have, in words; empty if they do not.

    Args:
        lacking: devices that jobs could use and no node has.
        per_node: devices of one more node.
        is_scaled: whether an autoscaler is known that may add nodes.
    """
    if not lacking:
        return ""
    count = -(-lacking // max(1, per_node))
    more = f"waiting for {count} more node{'s' if count > 1 else ''}"
    if is_scaled:
        return f"{more}, which Ray's autoscaler was asked for"
    return f"{more}: Ray was asked for them, and without an autoscaler needs 'ray start --address' there"
