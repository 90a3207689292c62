"""Which nodes a job of torchrun has by its allocation, and when these have to form a new world; no I/O."""

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import islice

from edt_launch.cluster.allocation import Allocation


@dataclass(frozen=True)
class Node:
    """One agent of torchrun with its workers.

    Attributes:
        host: as the allocation names it.
        number: of the node among those of its host, from 0.
        devices: of its workers; None where the allocation binds none.
    """

    host: str
    number: int
    devices: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return self.host if self.number == 0 else f"{self.host} (agent {self.number + 1})"


@dataclass(frozen=True)
class World:
    """The nodes that an allocation of this generation makes, in the order of their ranks."""

    generation: int
    nodes: tuple[Node, ...]


def world_of(allocation: Allocation, workers: int, max_nodes: int) -> World:
    """The nodes of an allocation: one for every `workers` slots of a host, the first `max_nodes` of them."""
    every = (
        Node(host.host, number, host.devices and host.devices[number * workers : (number + 1) * workers])
        for host in allocation.hosts
        for number in range(host.slots // workers)
    )
    return World(allocation.generation, tuple(islice(every, max_nodes)))


def own_rank(world: World, is_here: Callable[[str], bool], seat: int) -> int | None:
    """The rank of this machine's node number `seat`, counted over all of its names; None if it has fewer."""
    here = (rank for rank, node in enumerate(world.nodes) if is_here(node.host))
    return next(islice(here, seat, None), None)


def must_restart(current: World, target: World, arrived: AbstractSet[int]) -> bool:
    """Whether the nodes of `current` have to stop their workers and meet again as `target`.

    They do at once when one of them has no place in it any more. For newcomers they do once all of these
    wait; until then training goes on.

    Args:
        arrived: ranks in `target` of the nodes that wait there.
    """
    if not set(current.nodes) <= set(target.nodes):
        return True
    newcomers = _newcomers(current, target)
    return bool(newcomers) and newcomers <= arrived


def is_restart_under_way(current: World, target: World, arrived: AbstractSet[int]) -> bool:
    """Whether a node of `current` waits for `target` already, with its workers stopped or failed."""
    return bool(arrived - _newcomers(current, target))


def _newcomers(current: World, target: World) -> set[int]:
    return {rank for rank, node in enumerate(target.nodes) if node not in current.nodes}
