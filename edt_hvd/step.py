"""One optimizer step as a training loop sees it: micro-batches, weighted losses, one reduction."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from edt_hvd import recording, reducer
from edt_hvd.batching import Batch, MicroBatch

Share = Iterator[tuple[MicroBatch, bool, Any]]
"""A worker's micro-batches of a step: which one, whether it is the last, and its collated samples."""


class Step:
    """One optimizer step: iterate over it once, to the end, for this worker's micro-batches.

    Every micro-batch is what the collate function made of its samples. A worker may have none in a step;
    its loop then runs zero times and it still takes part in the reduction, which happens when the loop
    ends. After that every parameter's gradient is that of the whole batch's mean loss.

    Attributes:
        epoch: number of the epoch, from 0.
        index: number of the step in the epoch, from 0.
        samples: samples in the whole batch, over all workers.
        micro_batches: micro-batches in the whole batch, over all workers.
    """

    def __init__(
        self, epoch: int, batch: Batch, open_share: Callable[[], Share], advance: Callable[[], None]
    ) -> None:
        self.epoch = epoch
        self.index = batch.step
        self.samples = batch.samples
        self.micro_batches = batch.micro_batches
        self.finished = False
        self._open_share = open_share
        self._advance = advance
        self._begun = False
        self._reducers: Sequence[reducer.Reducer] = ()
        self._current: tuple[MicroBatch, bool] | None = None
        self._loss: float | torch.Tensor = 0.0

    def __repr__(self) -> str:
        return f"<step {self.index} of epoch {self.epoch}>"

    def __iter__(self) -> Iterator[Any]:
        if self._begun:
            raise RuntimeError(f"{self} has been iterated over already; take the next step from the loader")
        self._begun = True
        share = self._open_share()
        recorder = recording.current()
        self._reducers = reducer.active()
        for each in self._reducers:
            each.begin_step()
        try:
            for micro_batch, last, data in share:
                self._current = (micro_batch, last)
                with recorder.micro_batch(self.epoch, micro_batch.positions.start, data):
                    yield data
        finally:
            self._current = None
        losses = [each.finish_step(self._loss) for each in self._reducers]
        self._loss = losses[0] if losses else self._loss
        self._advance()
        self.finished = True
        recorder.reduced(self._loss)

    def backward(
        self, loss: torch.Tensor, *, scaler: torch.amp.GradScaler | None = None, retain_graph: bool = False
    ) -> None:
        """Add a micro-batch's gradients to the step's, weighted by its share of the batch's samples.

        May be called more than once in a micro-batch; the losses add up.

        Args:
            loss: mean loss over the micro-batch's samples; one element.
            scaler: scales the gradients, not `Step.loss`; pass it here instead of calling ``scaler.scale``.
            retain_graph: keep the graph for another backward through it.

        Raises:
            RuntimeError: outside the loop over the step.
            TypeError: a loss that is not a tensor.
        """
        if self._current is None:
            raise RuntimeError(
                f"backward() outside the loop over {self}; call it once the step gave a micro-batch"
            )
        if not isinstance(loss, torch.Tensor):
            raise TypeError(
                f"backward() got a {type(loss).__name__}; give the loss tensor, before any .item()"
            )
        micro_batch, last = self._current
        for each in self._reducers:
            each.before_backward(last)
        recording.current().before_backward()
        weighted = loss * micro_batch.weight
        torch.autograd.backward(
            weighted if scaler is None else scaler.scale(weighted), retain_graph=retain_graph
        )
        self._loss = self._loss + loss.detach().double() * micro_batch.weight

    @property
    def loss(self) -> float:
        """Mean loss over the whole batch's samples, the same on every worker.

        Without a `DistributedOptimizer` nothing is reduced, and it is this worker's part of that mean.

        Raises:
            RuntimeError: the loop over the step has not ended.
        """
        if not self.finished:
            raise RuntimeError(
                f"the loss of {self} is known when the loop over it has ended; read it after that"
            )
        return float(self._loss)
