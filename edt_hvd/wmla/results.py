"""What executors report of a training, and the order of it.

Messages are tuples of plain values, so that they travel as JSON. Everything in them follows from the
training, not from who has computed what, but for the number of workers, which is only shown.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple


class MiniBatch(NamedTuple):
    """What came of one mini-batch.

    Attributes:
        samples: in it.
        loss: their mean loss.
        accuracy: of them, in percent.
        metrics: the values of the program's own, in their order.
    """

    samples: int
    loss: float
    accuracy: float
    metrics: tuple[float, ...] = ()


@dataclass(frozen=True)
class Begun:
    """The training is about to begin, or goes on in new executors.

    Attributes:
        batches: mini-batches of an epoch.
        batches_per_step: mini-batches of a step; of the last in an epoch maybe less.
        means: those of the epoch under way, as `Means.state_dict` has them.
    """

    batches: int
    batches_per_step: int
    means: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class StepDone:
    """Mini-batches of an optimizer step, in the order of the batch.

    Attributes:
        first: the place in the batch of the first of them.
    """

    epoch: int
    step: int
    workers: int
    batches: tuple[MiniBatch, ...]
    first: int = 0


@dataclass(frozen=True)
class Validated:
    """A validation after an epoch; means over the test set."""

    epoch: int
    result: MiniBatch


@dataclass(frozen=True)
class EpochDone:
    """An epoch, with its validation."""

    epoch: int


@dataclass(frozen=True)
class TrainingDone:
    """The last epoch, and the final model is saved."""


@dataclass(frozen=True)
class Failed:
    """An executor has raised an exception; `error` is it, and where."""

    error: str


Result = StepDone | Validated | EpochDone | TrainingDone
Message = Begun | Result
Record = Message | Failed
_KINDS: Mapping[str, type[Record]] = {
    kind.__name__: kind for kind in (Begun, Failed, StepDone, Validated, EpochDone, TrainingDone)
}


MAX_NUMBERS = 2000
"""Numbers in a `StepDone`, about: a message has a limited size."""


def cut(done: StepDone) -> Iterator[StepDone]:
    """A step's mini-batches in messages of limited size."""
    count = max(1, MAX_NUMBERS // (3 + len(done.batches[0].metrics))) if done.batches else 1
    for first in range(0, len(done.batches), count):
        yield replace(done, batches=done.batches[first : first + count], first=first)


def encode(message: Record) -> str:
    """A line of JSON, without its end."""
    return json.dumps({"is": type(message).__name__, **vars(message)})


def decode(line: str | bytes) -> Record:
    """The message of a line.

    Raises:
        ValueError: it is none.
    """
    try:
        fields = json.loads(line)
        kind = _KINDS[fields.pop("is")]
        if kind is StepDone:
            return StepDone(**{**fields, "batches": tuple(map(_mini_batch, fields["batches"]))})
        if kind is Validated:
            return Validated(fields["epoch"], _mini_batch(fields["result"]))
        return kind(**fields)
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise ValueError(f"{line[:200]!r} is no message of an executor: {error}") from error


class Deduplicator:
    """Lets every result pass once, in the order of the training.

    Steps are done again after the loss of a worker, and told again by the worker that takes over from a lost
    one: both have the same content. What nobody is left to tell is not waited for.
    """

    def __init__(self) -> None:
        self._last = (-1, 0, 0, 0)

    def admits(self, result: Result) -> bool:
        """Whether the result is new; it is not from then on."""
        position = _position(result)
        if position <= self._last:
            return False
        self._last = position
        return True


def _position(result: Result) -> tuple[int, int, int, int]:
    match result:
        case StepDone():
            return result.epoch, 0, result.step, result.first
        case Validated():
            return result.epoch, 1, 0, 0
        case EpochDone():
            return result.epoch, 2, 0, 0
        case TrainingDone():
            return sys.maxsize, 0, 0, 0


class Means:
    """Means over the mini-batches of an epoch so far, weighted by their samples."""

    def __init__(self) -> None:
        self.epoch = -1
        self._samples = 0
        self._sums: tuple[float, ...] = ()

    def add(self, epoch: int, batch: MiniBatch) -> MiniBatch:
        """Take a mini-batch in; begins anew with another epoch. The means with it."""
        values = (batch.loss, batch.accuracy, *batch.metrics)
        if epoch != self.epoch:
            self.epoch, self._samples, self._sums = epoch, 0, (0.0,) * len(values)
        self._samples += batch.samples
        self._sums = tuple(
            total + value * batch.samples for total, value in zip(self._sums, values, strict=True)
        )
        loss, accuracy, *metrics = (total / self._samples for total in self._sums)
        return MiniBatch(self._samples, loss, accuracy, tuple(metrics))

    def state_dict(self) -> dict[str, Any]:
        """What they go on from, as plain values."""
        return {"epoch": self.epoch, "samples": self._samples, "sums": list(self._sums)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`."""
        self.epoch, self._samples = state["epoch"], state["samples"]
        self._sums = tuple(state["sums"])


def _mini_batch(fields: list[Any]) -> MiniBatch:
    samples, loss, accuracy, metrics = fields
    return MiniBatch(samples, loss, accuracy, tuple(metrics))
