"""Full copies of a state: taken into host memory, written to disk, and restored from there."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import horovod.torch as hvd

from edt_hvd.data.loader import ElasticDataLoader
from edt_hvd.data.randomness import random_state
from edt_hvd.observing import Values
from edt_hvd.state.checkpoint import checkpoints
from edt_hvd.state.checkpoint.checkpoints import Checkpoints
from edt_hvd.state.checkpoint.storage import Content
from edt_hvd.state.contents import Contents
from edt_hvd.state.recovery.exposure import Exposure
from edt_hvd.state.recovery.rollback import Rollback
from edt_hvd.state.snapshot import Snapshots
from edt_hvd.state.tree import of_type
from edt_hvd.world import stages
from edt_hvd.world.stages import Stage


class Checkpointing:
    """The full copies of one state.

    Args:
        contents: what is copied.
        rollback: keeps the copy in memory.
    """

    def __init__(self, contents: Contents, rollback: Rollback) -> None:
        self._contents = contents
        self._rollback = rollback
        self._checkpoints: Checkpoints | None = None
        """Known from the first `restore` on; None also where none are wanted."""

    @property
    def writes(self) -> bool:
        """Whether this worker is the one that writes checkpoints."""
        return self._checkpoints is not None and hvd.rank() == 0

    def restore(self, is_first: bool) -> Content | None:
        """Load the newest checkpoint on rank 0; None elsewhere, and where there is none.

        Args:
            is_first: as for `Contents.load`.

        Raises:
            StateError: training cannot go on from it.
            ValueError: an environment variable of `edt_hvd.state.checkpoint` is invalid.
        """
        if self._checkpoints is None:  # else the first sync was tried before
            self._checkpoints = checkpoints.for_next_state()
        if self._checkpoints is None or hvd.rank() != 0:
            return None
        found: list[Content] = []

        def load(content: Content) -> None:
            self._contents.load(content.state, is_first)
            random_state.restore(dict(content.random))
            self._rollback.exposure = Exposure(*content.about.get("exposure", ()))
            found.append(content)

        with stages.during(Stage.RESTORING):
            self._checkpoints.restore(load)
        return found[0] if found else None

    def take_snapshot(self, commits: int) -> bool:
        """Copy the state after so many commits into host memory; whether there was enough."""
        return self._rollback.take_snapshot(self._contents.values(), commits, self._contents.prepared_tree())

    def save(self, now: float, commits: int) -> None:
        """Take a snapshot, which is also written to disk if it is time."""
        if self._checkpoints is not None and self.writes:
            self._checkpoints.collect()
            if self.take_snapshot(commits):
                self._checkpoints.offer(now, self._rollback.snapshots, self._about(commits))
        else:
            self.take_snapshot(commits)

    def finish(self, commits: int, about: Mapping[str, Any]) -> None:
        """Write a checkpoint of the present state, if any are written, and wait for it.

        Args:
            commits: that the state is of.
            about: for the manifest.
        """

        def copy() -> Snapshots:
            if not self.take_snapshot(commits):  # there is no memory for a copy: the state itself is written
                self._rollback.snapshots.lend(self._contents.tree(), commits)
            return self._rollback.snapshots

        if self._checkpoints is not None:
            self._checkpoints.finish(commits, copy, {**self._about(commits), **about})

    def _about(self, commits: int) -> dict[str, Any]:
        values = self._contents.values()
        loaders = of_type(values, ElasticDataLoader)
        position = {"epoch": loaders[0].epoch, "step": loaders[0].position} if loaders else {}
        exposure = dataclasses.astuple(self._rollback.exposure)
        return {"steps": steps_done(values, commits), **position, "exposure": exposure}


def steps_done(values: Values, commits: int) -> int:
    """Optimizer steps done: those of the first loader of a state, or else its commits."""
    loaders = of_type(values, ElasticDataLoader)
    return loaders[0].total_steps_done if loaders else commits
