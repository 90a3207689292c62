"""Numbering the members of a world, in Horovod's terms."""

from collections.abc import Sequence
from itertools import groupby

from edt_launch.membership.protocol import Assignment, Worker


def assign(members: Sequence[Worker], generation: int) -> tuple[Assignment, ...]:
    """Number the members of a world.

    Rank 0 is the member of the last generation that has the state with the most progress, because its state
    is the one that everybody receives; among equals the lowest old rank. Hosts follow in the order of their
    oldest member, and the workers of a host stand together in the order of their slots.
    """
    root = min(
        members,
        key=lambda w: (w.generation != generation, not w.has_state, -w.progress, w.rank, w.id),
    )
    host_age: dict[str, tuple[bool, int]] = {}
    for worker in sorted(members, key=lambda w: w.id):
        host_age.setdefault(worker.slot.host, (worker.slot.host != root.slot.host, worker.id))
    order = sorted(members, key=lambda w: (host_age[w.slot.host], w is not root, w.slot.index, w.id))
    on_host = {host: [*workers] for host, workers in groupby(order, lambda w: w.slot.host)}
    assignments = []
    for rank, worker in enumerate(order):
        neighbours = on_host[worker.slot.host]
        local_rank = neighbours.index(worker)
        across = [host for host, workers in on_host.items() if len(workers) > local_rank]
        assignments.append(
            Assignment(
                worker=worker.id,
                rank=rank,
                size=len(order),
                local_rank=local_rank,
                local_size=len(neighbours),
                cross_rank=across.index(worker.slot.host),
                cross_size=len(across),
                host=worker.slot.host,
            )
        )
    return tuple(assignments)
