"""Going back to a commit: the copies that this needs, and which of them applies.

- A *rollback point* is taken at every commit. It holds what is small: plain values, the states of schedulers,
  scalers and loaders, the models' buffers, the options of an optimizer's parameter groups. Parameters and
  optimizer states change only in ``optimizer.step()``; as long as no step has followed the last commit, the
  rollback point and the live parameters together *are* the committed state. A module that no optimizer of the
  state steps, such as an average of the weights, is in the rollback point as a whole, unless it is large (see
  `rollback_point`).
- A *snapshot* is a full copy in host memory, needed once a step has followed the commit. It is taken when it
  begins to be needed, and from then on as often as its measured cost allows.

A further pass over a step, as of sharpness-aware minimization, may begin with other parameters than the
commit's, and torch does not count writes through ``.data``: from then on, too, only a snapshot counts.

**When a snapshot is needed.** A worker notices a loss only where it waits for others, in a collective. If no
collective is called between the first change of the parameters after a commit and the next commit, no worker
can notice one there: whoever has finished the reduction of a step runs on through ``optimizer.step()`` to the
commit, and fails, if at all, in a collective after it. So wherever a worker notices a loss, its parameters
are those of its last commit. Others may be one commit behind, since no reduction ends without a contribution
of every worker; they receive the state from those that are ahead. No full copy is looked at in any of this,
and none is taken (see `exposure`). Snapshots are taken

- until the script has shown, by a first step, that it calls no collective in between;
- once it has called one there, has passed over a step again or has changed parameters otherwise than by an
  optimizer of the state;
- before the last step of an epoch, until the next epoch begins: scripts validate there, with collectives.
  This ends when an epoch has ended without any;
- always, where what is small does not fit into a rollback point, or large tensors are left out of it: it
  takes a full copy to tell whether those are the commit's;
- for checkpoints.

They are dropped when they are not needed any more. They are not taken, with a warning, where they would not
fit into the memory that is available. A worker that has to go back to a snapshot and has none - because there
was no memory, or it was the first time that a collective was called there - has no state: it receives that of
the others or, if none of them has one, all go on from the newest checkpoint. Without one the job ends with an
error. No worker goes on from what it has then.

When a new world is formed, survivors take no snapshot in the pause: until the next step the rollback point is
enough. If a worker is lost between that step and its commit, each worker goes back to its last snapshot: a
survivor to one from before the change, a newcomer to the one that it took of the state that it received. All
then go on from the latest of them.
"""

import time
import weakref
from collections.abc import Callable
from typing import Any

import torch

from edt_hvd.observing import Values
from edt_hvd.reduction import usage_checks
from edt_hvd.state.recovery.exposure import Exposure
from edt_hvd.state.recovery.rollback_point import RollbackPoint, large_of
from edt_hvd.state.snapshot import Snapshots
from edt_hvd.state.state_dicts import is_watchable
from edt_hvd.state.tree import ModuleKinds, full_tree, load, load_small, modules_of
from edt_hvd.world import waits


class Rollback:
    """The copies of one state. Its values are passed in, since the objects they name may be replaced.

    Attributes:
        snapshots: holds the last full copy.
        point: the last commit's; None if there was none yet, or if what is small does not fit into it.
        exposure: what has been seen of collectives between steps and commits.
    """

    def __init__(self) -> None:
        self.snapshots = Snapshots()
        self.point: RollbackPoint | None = None
        self.exposure = Exposure()
        self._waits: int | None = None
        """How many there had been before the first step after the last commit; None until then."""
        waits.watch()
        self._watched: weakref.WeakSet[torch.optim.Optimizer] = weakref.WeakSet()
        self._kinds = ModuleKinds()
        self._stepped = False
        self._passes = 0
        self._versions: list[int] = []
        self._committed: Values = {}
        self._copied: Values = {}
        """The objects as of the last commit, and as of the last snapshot."""

    def watch(self, values: Values) -> None:
        """Follow the steps of the optimizers among the values."""
        for value in values.values():
            if isinstance(value, torch.optim.Optimizer) and value not in self._watched:
                self._watched.add(value)
                if is_watchable(value):
                    value.register_step_pre_hook(self._hook(Rollback._before_step))
                    value.register_step_post_hook(self._hook(Rollback._after_step))

    def _hook(self, note: "Callable[[Rollback], None]") -> Callable[..., None]:
        """A hook of an optimizer that keeps neither this object nor what refers to it alive."""
        reference = weakref.ref(self)

        def hook(*_: Any) -> None:
            rollback = reference()
            if rollback is not None:
                note(rollback)

        return hook

    def _before_step(self) -> None:
        if self._waits is None:
            self._waits = waits.count()

    def _after_step(self) -> None:
        self._stepped = True

    def note_commit(self, values: Values) -> None:
        """The parameters are now those of a commit."""
        self._stepped, self._waits = False, None
        self._passes = usage_checks.further_passes()
        self._committed = values
        self._versions = self._kinds.parameter_versions(values)

    def end_stretch(self, is_end: bool) -> None:
        """A commit is made: note whether a loss could have been noticed since the parameters changed.

        Args:
            is_end: whether it belongs to the end of an epoch.
        """
        values = self._committed
        if self._stepped:
            exposed = waits.count() > (self._waits or 0) or usage_checks.further_passes() > self._passes
            self.exposure.note(exposed, is_end)
        elif values and self._versions != self._kinds.parameter_versions(values):
            self.exposure.note(True, is_end)  # when they were changed is not known

    def needs_copy(self, may_end: Callable[[], bool]) -> bool:
        """Whether a rollback after the next step, which `may_end` an epoch, may need a full copy."""
        is_whole = self.point is not None and not self.point.left_out
        return not is_whole or self.exposure.needs_copy(may_end)

    def advance(self, values: Values) -> None:
        """Move the rollback point, if there is one, to the commit that was made."""
        if self.point is not None:
            self.point = self.point.next(self._kinds.small_tree(values))

    def take_snapshot(self, values: Values, commits: int, beside: dict[str, Any]) -> bool:
        """Take a full copy, into the buffers of an earlier one, and a rollback point.

        Args:
            values: of the state.
            commits: that they are of.
            beside: what checkpoints have of it, too; a rollback does not load it.

        Returns:
            Whether there was memory for it.
        """
        started = time.monotonic()
        tree = full_tree(values) | beside
        taken = self.snapshots.take(tree, commits)
        # Without a copy, what is left out of the point is still compared with the last one.
        self.take_point(values, is_full_copy=taken)
        if taken:
            self._copied = values
            self.snapshots.taken(started, time.monotonic())
        return taken

    def take_point(self, values: Values, is_full_copy: bool) -> None:
        """Take a rollback point, if what is small fits into one.

        Args:
            values: of the state.
            is_full_copy: whether they are those of the last snapshot; else they are a later commit's.
        """
        self.watch(values)
        self._kinds = ModuleKinds.of(values)
        self.note_commit(values)
        small = self._kinds.small_tree(values)
        modules = modules_of(values).keys()
        large = large_of(small, modules | {f"{name}.caches" for name in modules})
        if large is None:
            self.point = None
            return
        last = None if is_full_copy else self.point
        tracked = last.parameters_with_tracked_writes if last is not None else frozenset()
        self.point = RollbackPoint.of(small, large, self._kinds.plain_parameters(values, small), tracked)

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

    def protect(
        self,
        values: Values,
        is_new: bool,
        commits: int,
        beside: dict[str, Any],
        needs_copy: Callable[[], bool],
    ) -> None:
        """Take the copies that a rollback needs, now that all workers have the same state.

        Until the next step changes the parameters, a rollback point is enough. If a rollback after it may
        need a full copy, every worker must have one.

        Args:
            values: of the state.
            is_new: whether this worker has received or restored it, so that an earlier copy is another's.
            commits: that it is of.
            beside: as for `take_snapshot`.
            needs_copy: whether a full copy may be needed; called when there is a rollback point.
        """
        if is_new:
            self.snapshots.drop()
        self.take_point(values, is_full_copy=is_new)
        if not needs_copy():
            self.snapshots.drop()
        elif self.snapshots.last is None:
            self.take_snapshot(values, commits, beside)
