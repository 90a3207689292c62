"""Going back to a commit: the copies that this needs, and which of them applies.

- A *rollback point* is taken at every commit. It holds what is small: plain values, the states of schedulers,
  scalers and loaders, the models' buffers, the options of an optimizer's parameter groups. Parameters and
  optimizer states change only in ``optimizer.step()``; as long as no step has followed the last commit, the
  rollback point and the live parameters together *are* the committed state. A module that no optimizer of the
  state steps, such as an average of the weights, is in the rollback point as a whole, unless it is large (see
  `rollback_point`).
- A *snapshot* is a full copy in host memory, needed once a step has followed the commit. It is taken as often
  as its measured cost allows.

A further pass over a step, as of sharpness-aware minimization, may begin with other parameters than the
commit's, and torch does not count writes through ``.data``: from then on, too, only a snapshot counts.

When a new world is formed, nobody takes a snapshot in the pause: until the next step the rollback point is
enough. If a worker is lost between that step and its commit, each worker goes back to its last snapshot: a
survivor to one from before the change, a newcomer to the state that it received. All then go on from the
latest of them. Only the first worker of a job, which receives nothing, takes a snapshot when it begins.
"""

import time
import weakref
from collections.abc import Callable
from typing import Any

from edt_hvd.observing import Values
from edt_hvd.reduction import usage_checks
from edt_hvd.state.rollback_point import RollbackPoint, large_of
from edt_hvd.state.snapshot import Snapshots
from edt_hvd.state.tree import ModuleKinds, full_tree, load, load_small, modules_of


class Rollback:
    """The copies of one state. Its values are passed in, since the objects they name may be replaced.

    Attributes:
        snapshots: holds the last full copy.
        point: the last commit's; None if there was none yet, or if what is small does not fit into it.
    """

    def __init__(self) -> None:
        self.snapshots = Snapshots()
        self.point: RollbackPoint | None = None
        self._kinds = ModuleKinds()
        self._stepped = False
        self._passes = 0
        self._versions: list[int] = []
        self._committed: Values = {}
        self._copied: Values = {}
        """The objects as of the last commit, and as of the last snapshot."""

    def step_hook(self) -> Callable[..., None]:
        """A hook for optimizers' steps that keeps neither this object nor what refers to it alive."""
        reference = weakref.ref(self)

        def note_step(*_: Any) -> None:
            rollback = reference()
            if rollback is not None:
                rollback._stepped = True

        return note_step

    def note_commit(self, values: Values) -> None:
        """The parameters are now those of a commit."""
        self._stepped = False
        self._passes = usage_checks.further_passes()
        self._committed = values
        self._versions = self._kinds.parameter_versions(values)

    def advance(self, values: Values) -> None:
        """Move the rollback point, if there is one, to the commit that was made."""
        if self.point is not None:
            self.point = self.point.next(self._kinds.small_tree(values))

    def take_snapshot(self, values: Values, commits: int) -> None:
        """Take a full copy, into the buffers of an earlier one, and a rollback point."""
        started = time.monotonic()
        self.take_point(values, is_full_copy=True)
        self._copied = values
        self.snapshots.take(full_tree(values), commits)
        self.snapshots.taken(started, time.monotonic())

    def take_point(self, values: Values, is_full_copy: bool) -> None:
        """Take a rollback point, if what is small fits into one.

        Args:
            values: of the state.
            is_full_copy: whether they are those of the last snapshot; else they are a later commit's.
        """
        self._kinds = ModuleKinds.of(values)
        self.note_commit(values)
        small = self._kinds.small_tree(values)
        modules = modules_of(values).keys()
        large = large_of(small, modules | {f"{name}.caches" for name in modules})
        if large is None:
            self.point = None
            return
        last = None if is_full_copy else self.point
        counted = last.counted if last is not None else frozenset()
        self.point = RollbackPoint.of(small, large, self._kinds.plain_parameters(values, small), counted)

    def go_back(self) -> tuple[Values, dict[str, Any], int | None] | None:
        """Load the last commit or, if parameters may have changed since, the last snapshot.

        Returns:
            The state's objects as they were there, the contents of the plain ones, and the number of commits
            of the snapshot, if it was that; None if there is neither.
        """
        small = self._last_commit()
        if small is not None:
            return self._committed, load_small(self._committed, small, self._kinds), None
        last = self.snapshots.last
        if last is None:
            return None
        return self._copied, load(self._copied, last.tree), last.commits

    def _last_commit(self) -> dict[str, Any] | None:
        """The small tree of the last commit; None if only a snapshot helps."""
        values, further = self._committed, usage_checks.further_passes() > self._passes
        if self.point is None or self._stepped or further:
            return None
        if self._versions != self._kinds.parameter_versions(values):
            return None
        last = self.snapshots.last
        return self.point.completed(self._kinds.small_tree(values), last.tree if last is not None else None)

    def adopt(self, values: Values, tree: dict[str, Any], commits: int) -> None:
        """Keep a tree that these values have been loaded from as the last snapshot."""
        self._copied = values
        self.snapshots.adopt(tree, commits, time.monotonic())

    def protect(self, values: Values, received: dict[str, Any] | None, commits: int) -> None:
        """Take the copies that a rollback needs, now that all workers have the same state.

        Until the next step changes the parameters, a rollback point is enough. After it a rollback needs a
        full copy, of which every worker must have one; a received state serves as one.
        """
        self.take_point(values, is_full_copy=received is not None)
        if received is not None:
            self.adopt(values, received, commits)
        elif self.snapshots.last is None:
            self.take_snapshot(values, commits)
