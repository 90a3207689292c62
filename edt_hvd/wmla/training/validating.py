"""Looking at the test set after an epoch; the model is in eval mode, and nothing records gradients.

The engine's own way divides the test set among the executors. The program's `fn_test` may do anything with
the batches, so every executor gives it all of them. The result is the same for every number of executors.
"""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils.data import DataLoader

import edt_hvd
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.results import MiniBatch
from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training.data import loading, rewind, test_loader
from edt_hvd.wmla.training.metrics import accuracy, as_float
from edt_hvd.wmla.training.train_step import as_pair, computed, measured_of, program_view, target_of

Validation = Callable[[int], MiniBatch]
"""Gives the means over the test set after an epoch. A collective."""


def validation(program: Program, dataset: Any, config: TrainConfig) -> Validation | None:
    """How a program validates; None for a test set without samples."""
    if dataset is None:
        print("no validation: datasets_function returned a test set without samples", flush=True)
        return None
    return (_divided if program.fn_test is None else _own)(program, dataset, config)


def _divided(program: Program, dataset: Any, config: TrainConfig) -> Validation:
    """Forward pass and loss function, over this executor's part of the test set."""
    loader = test_loader(dataset, config, program.fn_batch_collate)

    def run(epoch: int) -> MiniBatch:
        rewind(loader, config, epoch)
        means = [edt_hvd.Mean() for _ in range(2 + len(program.metrics))]
        for step in loader:
            for data in step:
                _, outcome = computed(program, data)
                values = (outcome.loss, outcome.accuracy, *outcome.metrics)
                for mean, value in zip(means, values, strict=True):
                    mean.update(value, weight=len(step.micro_batch.positions))
        loss, found, *metrics = (mean.compute() for mean in means)
        return MiniBatch(len(dataset), loss, found, tuple(metrics))

    return run


def _own(program: Program, dataset: Any, config: TrainConfig) -> Validation:
    """The program's ``fn_test(model, test_iter, fn_args) -> loss``, over the whole test set."""
    function = program.fn_test
    assert function is not None
    loader = DataLoader[Any](dataset, config.batch_size, **loading(config, program.fn_batch_collate))

    def run(epoch: int) -> MiniBatch:
        with program_view(program, "fn_test") as outputs:
            batches = Batches(loader, outputs, program.metrics)
            loss = as_float("what fn_test returned", function(program.model, batches, None))
        found, *metrics = batches.means()
        return MiniBatch(len(dataset), loss, found, tuple(metrics))

    return run


class Batches:
    """What `fn_test` gets as `test_iter`: an iterator over the test set's batches, which can be used again.

    What the model was last asked for before the next batch counts as its answer to a batch: accuracy and
    metrics follow from it, since `fn_test` returns a loss alone. Asking for a batch is a heartbeat.
    """

    def __init__(self, loader: "DataLoader[Any]", outputs: list[Any], metrics: Any) -> None:
        self.dataset = loader.dataset
        self._loader = loader
        self._outputs = outputs
        self._metrics = metrics
        self._running: Iterator[Any] | None = None
        self._data: Any = None
        self._samples = 0
        self._sums = [0.0] * (1 + len(metrics))

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        self._running = iter(self._loader)
        return self

    def __next__(self) -> Any:
        edt_hvd.heartbeat()
        self._account()
        self._running = iter(self._loader) if self._running is None else self._running
        self._data = as_pair(next(self._running))
        return self._data

    def means(self) -> list[float]:
        """Accuracy in percent, and the program's own metrics: means over the samples that it has computed."""
        self._account()
        return [total / max(1, self._samples) for total in self._sums]

    def _account(self) -> None:
        if self._data is not None and self._outputs:
            (last,) = self._outputs
            values = (
                accuracy(last, target_of(self._data)),
                *measured_of(self._outputs, self._data, self._metrics),
            )
            samples = len(last) if isinstance(last, torch.Tensor) and last.dim() else 1
            self._samples += samples
            self._sums = [
                total + as_float("a metric", value) * samples
                for total, value in zip(self._sums, values, strict=True)
            ]
        self._data = None
        self._outputs.clear()
