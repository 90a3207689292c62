"""The program's loggers, in whichever of the two ways they want to be called; and the one used without any.

Which way follows from the names of a method's parameters: ``metrics`` first, or ``loss`` and ``acc``.
"""

import inspect
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from typing_extensions import override

from edt_hvd.wmla.callbacks import LoggerCallback
from edt_hvd.wmla.logs.elog import ELog
from edt_hvd.wmla.logs.emetrics import EMetrics

Metrics = Mapping[str, float]
"""``loss``, ``accuracy`` in percent, and the program's own metrics by name."""

_METHODS = ("log_train_metrics", "log_test_metrics", "on_train_begin", "on_train_end")
_FORMS = (
    "(self, loss, acc, completed_batch, worker=0) or (self, metrics, iteration, epoch, worker=0), as "
    "LoggerCallback has it"
)


class Logger:
    """A program's logger, called as it wants to be.

    Args:
        target: an object with any of ``log_train_metrics``, ``log_test_metrics``, ``on_train_begin`` and
            ``on_train_end``; None does nothing.

    Raises:
        TypeError: none of the methods, or one whose parameters are in neither of the two forms.
    """

    def __init__(self, target: Any) -> None:
        if target is not None and not any(hasattr(target, name) for name in _METHODS):
            raise TypeError(
                f"a logger is a {type(target).__name__} without any of {', '.join(_METHODS)}; give one "
                "object that has them, as LoggerCallback does"
            )
        self._train = _call_of(target, "log_train_metrics")
        self._test = _call_of(target, "log_test_metrics")
        self._target = target

    def begin(self) -> None:
        """Before the first result."""
        getattr(self._target, "on_train_begin", _nothing)()

    def train(self, metrics: Metrics, iteration: int, epoch: int) -> None:
        """The means with one more mini-batch, the number of mini-batches by then, and the epoch, from 0."""
        self._train(metrics, iteration, epoch)

    def test(self, metrics: Metrics, iteration: int, epoch: int) -> None:
        """The results of a validation."""
        self._test(metrics, iteration, epoch)

    def end(self) -> None:
        """After the last result."""
        getattr(self._target, "on_train_end", _nothing)()


Call = Callable[[Metrics, int, int], Any]


def _nothing(*_: Any) -> None:
    pass


def _call_of(target: Any, name: str) -> Call:
    method = getattr(target, name, None)
    if method is None or getattr(method, "__func__", None) is getattr(LoggerCallback, name):
        return _nothing
    parameters = _positional(method)
    names = [parameter.name for parameter in parameters]
    if names[:1] == ["metrics"] and _takes(parameters, 3):
        extra = (0,) * (_required(parameters) - 3)
        return lambda metrics, iteration, epoch: method(dict(metrics), iteration, epoch, *extra)
    if names[:2] == ["loss", "acc"] and _takes(parameters, 3):
        extra = (0,) * (_required(parameters) - 3)
        return lambda metrics, iteration, _: method(metrics["loss"], metrics["accuracy"], iteration, *extra)
    raise TypeError(
        f"{type(target).__name__}.{name} has the parameters {inspect.signature(method)}; it must be {_FORMS}"
    )


def _positional(method: Callable[..., Any]) -> list[inspect.Parameter]:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [each for each in inspect.signature(method).parameters.values() if each.kind in kinds]


def _takes(parameters: list[inspect.Parameter], count: int) -> bool:
    """Whether they can be called with so many arguments, and at most a worker besides."""
    return len(parameters) >= count and _required(parameters) <= count + 1


def _required(parameters: list[inspect.Parameter]) -> int:
    return max(3, sum(parameter.default is parameter.empty for parameter in parameters))


class DefaultLogger(LoggerCallback):
    """What is used without a logger: lines in ``$LOG_DIR/stdout`` that notebooks draw charts of, and metrics.

    Writes ``evaluation-metrics.txt`` beside it, and ``$RESULT_DIR/val_dict_list.json``, which searches over
    hyperparameters read: the losses of the validations or, without any, those of the mini-batches.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._train_losses: list[dict[str, float]] = []
        self._test_losses: list[dict[str, float]] = []

    @override
    def log_train_metrics(self, metrics: Metrics, iteration: int, epoch: int) -> None:
        self._steps = iteration
        self._train_losses.append({"steps": iteration, "loss": metrics["loss"]})
        self._write(EMetrics.TRAIN_GROUP, metrics)

    @override
    def log_test_metrics(self, metrics: Metrics, iteration: int, epoch: int) -> None:
        self._test_losses.append({"steps": self._steps, "loss": metrics["loss"]})
        self._write(EMetrics.TEST_GROUP, metrics)

    @override
    def on_train_end(self) -> None:
        losses = self._test_losses or self._train_losses
        if losses and "RESULT_DIR" in os.environ:  # a job that goes on after its end has none
            path = Path(os.environ["RESULT_DIR"], "val_dict_list.json")
            path.write_text(json.dumps(losses), encoding="utf-8")

    def _write(self, group: str, metrics: Metrics) -> None:
        if "LOG_DIR" not in os.environ:
            return
        loss, accuracy = metrics["loss"], metrics["accuracy"] / 100
        with ELog.open() as log:
            if group == EMetrics.TRAIN_GROUP:
                log.recordTrain("Train", self._steps, self._steps, loss, accuracy)
            else:
                log.recordTest("Test", loss, accuracy)
        with EMetrics.open() as recorder:
            recorder.record(group, self._steps, {**metrics, "accuracy": accuracy})
