"""The log of a training: takes results in order, computes the means, and notifies listeners."""

import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Protocol

from typing_extensions import override

from edt_hvd.wmla.logs.loggers import Logger
from edt_hvd.wmla.results import (
    Begun,
    Deduplicator,
    EpochDone,
    Means,
    Message,
    MiniBatch,
    StepDone,
    TrainingDone,
    Validated,
)


class Listener(Protocol):
    """Whoever is told what the training has come to. Values are means; accuracies are in percent."""

    def begin(self) -> None:
        """The training begins."""

    def train(self, means: MiniBatch, iteration: int, epoch: int, workers: int) -> None:
        """One more mini-batch, `iteration` in all, in epoch `epoch` from 0, with so many workers."""

    def test(self, result: MiniBatch, iteration: int, epoch: int) -> None:
        """A validation after epoch `epoch`."""

    def end(self, iteration: int, epochs: int) -> None:
        """The training has ended after so many mini-batches and epochs."""


class ToLogger(Listener):
    """Passes on to a program's logger."""

    def __init__(self, logger: Logger, names: Sequence[str]) -> None:
        self._logger = logger
        self._names = tuple(names)

    @override
    def begin(self) -> None:
        self._logger.begin()

    @override
    def train(self, means: MiniBatch, iteration: int, epoch: int, workers: int) -> None:
        self._logger.train(by_name(means, self._names), iteration, epoch)

    @override
    def test(self, result: MiniBatch, iteration: int, epoch: int) -> None:
        self._logger.test(by_name(result, self._names), 0, epoch)

    @override
    def end(self, iteration: int, epochs: int) -> None:
        self._logger.end()


def by_name(values: MiniBatch, names: Sequence[str]) -> dict[str, float]:
    """The values as loggers get them: ``loss``, ``accuracy`` in percent, and the program's own metrics.

    Metrics whose name is taken are numbered: ``f1``, ``f1_2``.
    """
    found = {"loss": values.loss, "accuracy": values.accuracy}
    for name, value in zip(names, values.metrics, strict=True):
        numbered = (f"{name}_{number}" for number in itertools.count(2))
        found[next(each for each in itertools.chain([name], numbered) if each not in found)] = value
    return found


class ResultLog:
    """Takes what executors report.

    Args:
        listeners: told everything, in this order.
        before_epoch: called with the number of every epoch after the first, before it begins.

    Attributes:
        is_complete: whether the last result of the training has come.
    """

    def __init__(
        self, listeners: Sequence[Listener], before_epoch: Callable[[int], None] = lambda _: None
    ) -> None:
        self._listeners = listeners
        self._before_epoch = before_epoch
        self._deduplicator = Deduplicator()
        self._means = Means()
        self._plan: Begun | None = None
        self._begun = False
        self._known = False
        self._iteration = 0
        self._epochs = 0
        self.is_complete = False

    def take(self, message: Message, *, notify: bool = True) -> None:
        """Take a message in, and notify the listeners if asked to."""
        if isinstance(message, Begun):
            if self._plan is None and message.means:
                self._means.load_state_dict(message.means)
            self._plan = message
            if notify and not self._begun:
                self._begun = True
                for listener in self._listeners:
                    listener.begin()
        elif self._deduplicator.admits(message):
            listeners = self._listeners if notify else ()
            if isinstance(message, StepDone):
                self._take_step(message, listeners)
            elif isinstance(message, Validated):
                for listener in listeners:
                    listener.test(message.result, self._iteration, message.epoch)
            elif isinstance(message, TrainingDone):
                self.is_complete = True
            elif isinstance(message, EpochDone):
                self._epochs = message.epoch + 1
                if notify:
                    self._before_epoch(self._epochs)

    def end(self, *, notify: bool = True) -> None:
        """The training has ended."""
        for listener in self._listeners if notify else ():
            listener.end(self._iteration, self._epochs)

    def _take_step(self, done: StepDone, listeners: Sequence[Listener]) -> None:
        assert self._plan is not None
        begin = done.epoch * self._plan.batches + done.step * self._plan.batches_per_step + done.first
        if self._known and begin != self._iteration:
            warnings.warn(
                f"the results of mini-batches {self._iteration + 1} to {begin} were lost with all executors; "
                "the model has them, the logger does not",
                stacklevel=2,
            )
        self._known = True
        for number, batch in enumerate(done.batches, begin + 1):
            means = self._means.add(done.epoch, batch)
            self._iteration = number
            for listener in listeners:
                listener.train(means, number, done.epoch, done.workers)
