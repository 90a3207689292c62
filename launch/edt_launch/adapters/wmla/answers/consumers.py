"""The owners' tree as WMLA's clients see it: consumers, of which users are the last."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from edt_launch.adapters.wmla.answers.views import Json
from edt_launch.service.cluster.records import ShareRecord
from edt_launch.service.names import ROOT


@dataclass(frozen=True)
class Consumers:
    """The tree; `parents` has the parent of each node, and the root as ``""``."""

    parents: Mapping[str, str | None]

    @classmethod
    def of(cls, shares: Iterable[ShareRecord]) -> "Consumers":
        """The tree of these nodes; it has its root in any case."""
        return cls({"": None} | {node.name: node.parent for node in shares})

    def __contains__(self, name: str) -> bool:
        return name in self.parents

    def tree(self, name: str = "") -> Json:
        """A node, and what is below it."""
        parent = self.parents[name]
        below = [child for child in sorted(self.parents) if child and self.parents[child] == name]
        return {
            "id": name or ROOT,
            "pid": "" if parent is None else parent or ROOT,
            "childTreeDto": [self.tree(child) for child in below],
        }

    def above(self, user: str) -> str:
        """The path of the node that a user's own is below: ``/-/lab``, so that ``/-/lab/ann`` is the user's.

        That of the root for somebody who is not in the tree.
        """
        path: list[str] = []
        name = self.parents.get(user)
        while name:
            path.append(name)
            name = self.parents.get(name)
        return "/".join(["", ROOT, *reversed(path)])
