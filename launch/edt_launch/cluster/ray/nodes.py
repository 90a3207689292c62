"""What Ray says of its nodes, in our words. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

GPU, CPU = "GPU", "CPU"

ID_SHOWN = 6
"""Characters of a node's id that tell it from others of the same name."""


@dataclass(frozen=True)
class RayNode:
    """A node that is alive.

    Attributes:
        id: Ray's, new whenever the node starts again.
        name: of the host, as jobs see it.
        address: at which other nodes reach it.
        total: devices it has.
        free: devices that nobody holds or uses.
        is_draining: Ray is about to take it away.
    """

    id: str
    name: str
    address: str
    total: int = 0
    free: int = 0
    is_draining: bool = False


def kind_of(listed: Iterable[Mapping[str, Any]], possible: Iterable[str] = ()) -> str:
    """The resource that is a device of this cluster: GPUs where it has or may have any, else processor cores.

    Args:
        listed: as `ray.nodes()` has them.
        possible: resources of the nodes that the autoscaler can add.
    """
    has_gpus = any(node["Alive"] and node["Resources"].get(GPU, 0) >= 1 for node in listed)
    return GPU if has_gpus or GPU in possible else CPU


def names_of(known: Mapping[str, str], listed: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """The host names of the nodes that are alive, by their ids; `known` nodes keep theirs.

    The name given to ``ray start --node-name``, else the machine's. The second node of a name, which is on
    the same machine, has the end of its id behind it.
    """
    alive = {node["NodeID"]: node for node in listed if node["Alive"]}
    names = {id_: name for id_, name in known.items() if id_ in alive}
    taken = set(names.values())
    for id_ in sorted(alive.keys() - names.keys()):
        node = alive[id_]
        given = node.get("NodeName") or ""
        name = given if given and given != node["NodeManagerAddress"] else node["NodeManagerHostname"]
        names[id_] = name if name not in taken else f"{name}-{id_[-ID_SHOWN:]}"
        taken.add(names[id_])
    return names


def read(
    listed: Iterable[Mapping[str, Any]],
    available: Mapping[str, Mapping[str, float]],
    draining: Iterable[str],
    names: Mapping[str, str],
    kind: str,
) -> tuple[RayNode, ...]:
    """The nodes that are alive.

    Args:
        listed: as `ray.nodes()` has them.
        available: of each node, the resources that are not in use.
        draining: ids of nodes that are about to go.
        names: see `names_of`.
        kind: of resource that is a device.
    """
    leaving = frozenset(draining)
    return tuple(
        RayNode(
            node["NodeID"],
            names[node["NodeID"]],
            node["NodeManagerAddress"],
            int(node["Resources"].get(kind, 0)),
            int(available.get(node["NodeID"], {}).get(kind, 0)),
            node["NodeID"] in leaving,
        )
        for node in listed
        if node["NodeID"] in names
    )
