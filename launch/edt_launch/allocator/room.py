"""What is still free along the owners' tree."""

from collections.abc import Mapping, Sequence

from edt_launch.allocator.tree import Node
from edt_launch.allocator.work import Work


class Room:
    """What is still free of the limits along the owners' tree.

    What owners are guaranteed, and can use, counts as taken by them.
    """

    def __init__(self, work: Work, fixed: Mapping[str, int], claims: Mapping[str, int]) -> None:
        """Start with what is taken right below each node, and what it may claim, both by its name."""
        self._homes = work.homes
        self._claims = claims
        self._used = {node.name: fixed.get(node.name, 0) for node in work.nodes}
        for node in reversed(work.nodes):
            if node.parent is not None:
                self._used[node.parent.name] += max(self._used[node.name], claims.get(node.name, 0))

    def lacking(self, index: int, count: int) -> Node | None:
        """The node, nearest first, that has no room for `count` more GPUs of a job."""
        for node in self._homes[index].path:
            before, after = self._step(node, count)
            if after > node.limit:
                return node
            count = after - before
        return None

    def is_guaranteed(self, index: int, count: int) -> bool:
        """Whether some node above a job has that much left of its guarantee."""
        return any(self._used[node.name] + count <= node.guarantee for node in self._homes[index].path)

    def fits(self, nodes: Sequence[Node]) -> bool:
        """Whether what is taken and claimed keeps all limits."""
        return all(max(self._step(node, 0)) <= node.limit for node in nodes)

    def take(self, index: int, count: int) -> None:
        """Count GPUs as taken by a job."""
        for node in self._homes[index].path:
            before, after = self._step(node, count)
            self._used[node.name] += count
            count = after - before

    def _step(self, node: Node, count: int) -> tuple[int, int]:
        claim, used = self._claims.get(node.name, 0), self._used[node.name]
        return max(claim, used), max(claim, used + count)
