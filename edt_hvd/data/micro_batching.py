"""The size of micro-batches, chosen once for the job's largest number of workers."""

import warnings
from collections.abc import Mapping
from typing import Any

from edt_hvd.data.batching import DEFAULT_MICRO_BATCHES, Batch, choose_micro_batch_size
from edt_hvd.world import world


class MicroBatching:
    """How a loader's batches are cut into micro-batches.

    The size does not depend on the number of workers, except that it is made smaller, with a warning, where
    it leaves fewer micro-batches than the job may have workers. The world is asked when a size is first
    needed. What follows from it is part of the loader's state, so that workers agree on it even where the
    job's largest number of workers changes.

    Where batches differ, a requested size is used as it is, although a small batch may not be enough for all
    workers then: what a step computes must not depend on the largest number of workers.

    Args:
        effective_batch_size: samples in a batch; None where batches differ.
        requested: samples in a micro-batch, as the script wants it; None for the default.

    Attributes:
        requested: as above.
    """

    def __init__(self, effective_batch_size: int | None, requested: int | None) -> None:
        self._effective_batch_size = effective_batch_size
        self.requested = requested
        self._size: int | None = None
        """Of the micro-batches, where batches do not differ."""
        self._cut_for: int | None = None
        """The number of workers that each batch is to have micro-batches for, where batches differ."""
        self._idle_in_world: int | None = None

    @property
    def chosen(self) -> int:
        """The size; where batches differ, the requested one or what their sizes follow from."""
        if self._effective_batch_size is None:
            return self._choose_number() if self.requested is None else self.requested
        if self._size is None:
            self._size, warning = choose_micro_batch_size(
                self._effective_batch_size, self.requested, world.max_size()
            )
            _warn(warning)
        return self._size

    def micro_batch_size(self, samples: int) -> int:
        """The size of the micro-batches of a batch with so many samples."""
        if self._effective_batch_size is not None or self.requested is not None:
            return self.chosen
        return choose_micro_batch_size(samples, None, self._choose_number())[0]

    def _choose_number(self) -> int:
        if self._cut_for is None:
            self._cut_for = max(DEFAULT_MICRO_BATCHES, workers := world.max_size())
            if workers > DEFAULT_MICRO_BATCHES:
                _warn(
                    f"each batch of the batch_sampler is cut for the {workers} workers that this job may "
                    f"have, not into {DEFAULT_MICRO_BATCHES} micro-batches; pass a micro_batch_size to have "
                    "it cut alike in all jobs"
                )
        return self._cut_for

    def warn_of_idle_workers(self, batch: Batch) -> None:
        """Warn on the coordinator, once for a world, where a batch leaves workers without a micro-batch.

        A short batch at the end of an epoch is left out.
        """
        workers, found = world.size(), batch.micro_batches
        is_whole = batch.step == 0 or batch.samples == self._effective_batch_size
        if found >= workers or not is_whole or world.rank() or self._idle_in_world == world.membership():
            return
        self._idle_in_world = world.membership()
        size, _ = choose_micro_batch_size(batch.samples, None, workers)
        advice = f"pass micro_batch_size={size}" if batch.samples >= workers else "make batches larger"
        warnings.warn(
            f"a step of {batch.samples} samples has {found} micro-batches, fewer than the {workers} workers, "
            f"so {workers - found} of them have nothing to do; {advice}, or limit the job to {found} workers",
            stacklevel=2,
        )

    def state_dict(self) -> dict[str, Any]:
        """What was requested, and what was chosen."""
        return {
            "requested_micro_batch_size": self.requested,
            "micro_batch_size": self._size,
            "max_workers": self._cut_for,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what was chosen, if the same was requested."""
        same = state["requested_micro_batch_size"] == self.requested
        self._size = state["micro_batch_size"] if same else None
        self._cut_for = state["max_workers"] if same else None


def _warn(warning: str | None) -> None:
    if warning and world.rank() == 0:
        warnings.warn(warning, stacklevel=2)
