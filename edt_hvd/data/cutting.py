"""The size of micro-batches, chosen once for the job's largest number of workers."""

import warnings
from collections.abc import Mapping
from typing import Any

from edt_hvd.data.batching import choose_micro_batch_size
from edt_hvd.world import world


class Cutting:
    """How a loader's batches are cut into micro-batches.

    The world is asked when a size is first needed. What follows from it is part of the loader's state, so
    that workers agree on it even where the job's largest number of workers changes.

    Where batches differ, a requested size is used as it is, although a small batch may not be enough for all
    workers then: what a step computes must not depend on the largest number of workers.

    Args:
        effective_batch_size: samples in a batch; None where batches differ.
        requested: samples in a micro-batch, as the script wants it; None to have it chosen.

    Attributes:
        requested: as above.
    """

    def __init__(self, effective_batch_size: int | None, requested: int | None) -> None:
        self._effective_batch_size = effective_batch_size
        self.requested = requested
        self._chosen: int | None = None
        """The size of a micro-batch; where batches differ, the number of workers that each is cut for."""

    @property
    def chosen(self) -> int:
        """The size; where batches differ, what their sizes follow from besides the requested one."""
        if self._effective_batch_size is None and self.requested is not None:
            return self.requested
        if self._chosen is None:
            workers = world.max_size()
            samples = self._effective_batch_size
            self._chosen = workers if samples is None else self._choose(samples, workers)
        return self._chosen

    def micro_batch_size(self, samples: int) -> int:
        """The size of the micro-batches of a batch with so many samples."""
        if self._effective_batch_size is not None:
            return self.chosen
        if self.requested is not None:
            return self.requested
        return choose_micro_batch_size(samples, None, self.chosen)[0]

    def state_dict(self) -> dict[str, Any]:
        """What was requested, and what was chosen."""
        differ = self._effective_batch_size is None
        return {
            "requested_micro_batch_size": self.requested,
            "micro_batch_size": None if differ else self._chosen,
            "max_workers": self._chosen if differ else None,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what was chosen, if the same was requested."""
        same = state["requested_micro_batch_size"] == self.requested
        chosen = state["max_workers" if self._effective_batch_size is None else "micro_batch_size"]
        self._chosen = chosen if same else None

    def _choose(self, samples: int, max_workers: int) -> int:
        size, warning = choose_micro_batch_size(samples, self.requested, max_workers)
        if world.rank() != 0:
            return size
        if warning:
            warnings.warn(warning, stacklevel=2)
        if self.requested is None and not world.current().knows_max_size:
            warnings.warn(
                f"micro_batch_size={size} is chosen for the {world.size()} workers there are now: "
                "horovodrun does not tell its --max-np; give ElasticDataLoader a micro_batch_size, or "
                "set EDT_MAX_NP to that number",
                stacklevel=2,
            )
        return size
