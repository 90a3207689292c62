"""The interface of what takes part in the reduction of a step."""

from abc import ABC, abstractmethod

from edt_hvd.reduction.comparison import Description
from edt_hvd.reduction.header import Report


class StepParticipant(ABC):
    """Takes part in the reduction of every pass over a step. The loop over its micro-batches calls it."""

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

    @abstractmethod
    def reset(self) -> None:
        """A new world was formed: drop whatever is unfinished in the old one."""
