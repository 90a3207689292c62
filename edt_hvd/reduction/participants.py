"""What takes part in the reduction of every step: the interface, and which participants there are.

The loop over a step calls its participants: one reducer for every distributed optimizer, and `buffers` for
the buffers of models.
"""

import gc
import weakref
from abc import ABC, abstractmethod

from edt_hvd.reduction import agreement
from edt_hvd.reduction.comparison import Description
from edt_hvd.reduction.header import Report


class StepParticipant(ABC):
    """Takes part in the reduction of every pass over a step. The loop over its micro-batches calls it."""

    def begin_loop(self) -> None:  # noqa: B027 - optional
        """A loop over a loader begins: from here on the workers' optimizers step alike."""

    @abstractmethod
    def begin_pass(self, micro_batches: int, again: bool = False, after_other: bool = False) -> None:
        """A pass over an effective batch of `micro_batches`, over all workers, begins.

        Args:
            micro_batches: in the whole batch.
            again: it is not the first pass over that batch.
            after_other: since the last one, there was a pass over another batch.
        """

    def before_backward(self, weight: float, last: bool, scaled: bool) -> None:  # noqa: B027 - optional
        """A backward pass is about to run.

        Args:
            weight: of the micro-batch: its share of the batch's samples, or what the script gave.
            last: it belongs to this worker's last micro-batch.
            scaled: by a gradient scaler, which expects inf and nan.
        """

    def after_backward(self) -> None:  # noqa: B027 - optional
        """The backward pass is done."""

    def begin_collecting(self) -> None:  # noqa: B027 - optional
        """Backward passes of the script's own are about to run."""

    def collect(self) -> None:  # noqa: B027 - optional
        """They have run; between `before_backward` and `after_backward`."""

    def after_micro_batch(self, weight: float) -> None:  # noqa: B027 - optional
        """The loop's body has run for a micro-batch of that share of the batch's samples."""

    def abandon_pass(self) -> None:  # noqa: B027 - optional
        """The loop was left before its end."""

    def describe(self) -> Description:
        """What must be the same on every worker."""
        return {}

    @abstractmethod
    def report(self) -> Report:
        """Integers that all workers need; the same number of them on every worker."""

    @abstractmethod
    def finish_pass(self, reports: Report, divisor: float | None = None) -> None:
        """Reduce.

        Args:
            reports: one row a worker.
            divisor: the sum of all weights, where the script gave them; None where they sum to 1.
        """

    def note_commit(self) -> None:  # noqa: B027 - optional
        """The state is committed: gradients that no optimizer has stepped on are not part of it."""

    @abstractmethod
    def reset(self) -> None:
        """A new world was formed: drop whatever is unfinished in the old one."""


_registered: list[weakref.ref[StepParticipant]] = []
_may_have_stale = False


def register(participant: StepParticipant) -> None:
    """Have `participant` take part in the steps of every loader, if it does not yet."""
    global _may_have_stale
    if participant not in active():
        _may_have_stale = True
        _registered.append(weakref.ref(participant))


def collect_stale() -> None:
    """Drop participants whose models and optimizers are no longer referred to.

    All workers must have the same participants, but each runs its garbage collector at other times.
    """
    global _may_have_stale
    if _may_have_stale:
        gc.collect()
    _may_have_stale = False


def active() -> tuple[StepParticipant, ...]:
    """The participants that are alive, in the order in which they were registered."""
    living = [(reference, each) for reference in _registered if (each := reference()) is not None]
    _registered[:] = [reference for reference, _ in living]
    return tuple(each for _, each in living)


def describe() -> Description:
    """What must be the same on every worker, of all participants."""
    return {what: value for each in active() for what, value in each.describe().items()}


def begin_loop() -> None:
    """A loop over a loader begins."""
    agreement.note_loop()
    for each in active():
        each.begin_loop()


def note_commit() -> None:
    """The state is committed."""
    for each in active():
        each.note_commit()


def reset() -> None:
    """A new world was formed."""
    agreement.reset()
    for each in active():
        each.reset()
