"""Cutting an epoch into steps, micro-batches and the workers' shares of them. Arithmetic only.

An epoch is an order of the dataset's samples; everything here speaks of *positions* in that order::

    epoch        |---- step 0 ----|---- step 1 ----|-- 2 --|     effective_batch_size, the last may be short
    step 1       |----|----|----|--|                             micro_batch_size, the last may be short
    2 workers    |-- 0 ---|-- 1 ---|                             contiguous, balanced in micro-batches

Only the last line depends on the number of workers, so neither the samples of a step nor the weight of
any of them in its gradient does.
"""

import hashlib
from dataclasses import dataclass
from functools import cached_property

DEFAULT_MICRO_BATCHES = 8
"""Micro-batches in a step, at most, where a script does not say how large they are."""


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """The samples of one forward and backward pass.

    Attributes:
        index: of the micro-batch in its batch, from 0.
        positions: of its samples in the epoch's order.
        weight: its samples divided by the whole batch's; the weights of a batch sum to 1.
    """

    index: int
    positions: range
    weight: float


@dataclass(frozen=True)
class Batch:
    """The samples of one optimizer step, whatever the number of workers.

    Attributes:
        step: number of the step in its epoch, from 0.
        slots: for each micro-batch, the positions of its samples in the epoch's order. Not all are empty; the
            last that is not may be short. Of a stream that ends, other slots may be empty or short, too.
    """

    step: int
    slots: tuple[range, ...]

    @classmethod
    def cut(cls, step: int, positions: range, micro_batch_size: int) -> "Batch":
        """The batch of these positions, in micro-batches of that size."""
        starts = range(0, len(positions), micro_batch_size)
        return cls(step, tuple(positions[start : start + micro_batch_size] for start in starts))

    @cached_property
    def samples(self) -> int:
        """Number of samples in the whole batch."""
        return sum(map(len, self.slots))

    @cached_property
    def micro_batches(self) -> int:
        """Number of micro-batches in the whole batch; empty slots are none."""
        return sum(1 for positions in self.slots if positions)

    def share(self, rank: int, size: int) -> tuple[MicroBatch, ...]:
        """The micro-batches of worker `rank` of `size`, in order; none when there are fewer than workers."""
        run = balanced_run(len(self.slots), rank, size)
        return tuple(self._micro_batch(index) for index in run if self.slots[index])

    def max_per_worker(self, size: int) -> int:
        """The micro-batches of a worker of `size`, at most."""
        return -(-len(self.slots) // size)

    def _micro_batch(self, index: int) -> MicroBatch:
        return MicroBatch(index, self.slots[index], len(self.slots[index]) / self.samples)


@dataclass(frozen=True, slots=True)
class Batching:
    """How the epochs of a dataset are cut into batches.

    Attributes:
        dataset_length: samples in the dataset; may be 0.
        effective_batch_size: samples in every batch but the last of an epoch, which may be short.
        drop_last: leave a short last batch out.
    """

    dataset_length: int
    effective_batch_size: int
    drop_last: bool = False

    def __post_init__(self) -> None:
        check_positive("effective_batch_size", self.effective_batch_size)

    @property
    def steps(self) -> int:
        """Optimizer steps in an epoch."""
        if self.drop_last:
            return self.dataset_length // self.effective_batch_size
        return -(-self.dataset_length // self.effective_batch_size)

    def positions(self, step: int) -> range:
        """The positions of the samples of a step; never empty.

        Raises:
            IndexError: a step outside 0 to ``steps - 1``.
        """
        if not 0 <= step < self.steps:
            raise IndexError(
                f"step {step} is outside the epoch's {self.steps} steps; start the next epoch instead"
            )
        start = step * self.effective_batch_size
        return range(start, min(start + self.effective_batch_size, self.dataset_length))


def choose_micro_batch_size(
    effective_batch_size: int, requested: int | None, max_workers: int
) -> tuple[int, str | None]:
    """The micro-batch size with which every one of `max_workers` workers has something to do.

    That is the requested size or, when it leaves fewer micro-batches than workers, the largest one that
    does not. Without a request, the batch divided by `DEFAULT_MICRO_BATCHES`, rounded up, takes its place.

    Returns:
        The size, and a warning for the user if there is reason for one.

    Raises:
        ValueError, TypeError: as `check_sizes`.
    """
    check_sizes(effective_batch_size, requested)
    check_positive("max_workers", max_workers)
    wanted = -(-effective_batch_size // DEFAULT_MICRO_BATCHES) if requested is None else requested
    if max_workers > effective_batch_size:
        warning = (
            f"effective_batch_size={effective_batch_size} has fewer samples than this job may have workers "
            f"({max_workers}); some of them will have nothing to do. Raise effective_batch_size, or limit "
            f"the job to {effective_batch_size} workers"
        )
        return 1, warning
    size = wanted
    if max_workers > 1:
        size = min(size, -(-effective_batch_size // (max_workers - 1)) - 1)
    if size == wanted:
        return size, None
    named = f"the default micro_batch_size={wanted}" if requested is None else f"micro_batch_size={wanted}"
    warning = (
        f"{named} cuts effective_batch_size={effective_batch_size} into fewer "
        f"micro-batches than this job may have workers ({max_workers}); micro_batch_size={size} is used. "
        "Pass that, or raise effective_batch_size"
    )
    return size, warning


def balanced_run(items: int, rank: int, size: int) -> range:
    """The contiguous run of `items` that worker `rank` of `size` has; the runs differ by one at most.

    Raises:
        ValueError: a rank outside 0 to ``size - 1``.
    """
    if not 0 <= rank < size:
        raise ValueError(f"rank {rank} is outside the world of {size} workers; ranks go from 0 to {size - 1}")
    return range(rank * items // size, (rank + 1) * items // size)


def mixed_seed(*parts: int) -> int:
    """A seed of 64 bits from several numbers, such as seed and epoch; their order and every bit count."""
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def check_sizes(effective_batch_size: int, micro_batch_size: int | None) -> None:
    """Check the two sizes that a user gives.

    Raises:
        TypeError: one that is not a whole number.
        ValueError: one below 1, or a micro-batch larger than the batch.
    """
    check_positive("effective_batch_size", effective_batch_size)
    if micro_batch_size is None:
        return
    check_positive("micro_batch_size", micro_batch_size)
    if micro_batch_size > effective_batch_size:
        raise ValueError(
            f"micro_batch_size={micro_batch_size} is larger than "
            f"effective_batch_size={effective_batch_size}; make it smaller, or leave it out to have it chosen"
        )


def check_positive(name: str, value: int) -> None:
    """Check that a number is whole and at least 1.

    Raises:
        TypeError, ValueError: it is not; the message names it.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; give a whole number of at least 1")
    if value < 1:
        raise ValueError(f"{name}={value} is below 1; give a whole number of at least 1")
