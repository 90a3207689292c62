"""One optimizer step as a training loop sees it: micro-batches, weighted losses, one reduction."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from edt_hvd import observing
from edt_hvd.data.batching import Batch, MicroBatch
from edt_hvd.data.seeding import Purpose, seed_for
from edt_hvd.reduction import reducer
from edt_hvd.reduction.header import exact_sum
from edt_hvd.world import stages, world
from edt_hvd.world.stages import Stage

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
        self,
        seed: int,
        epoch: int,
        batch: Batch,
        open_share: Callable[[], Share],
        advance: Callable[[], None],
    ) -> None:
        self._seed = seed
        self.epoch = epoch
        self.index = batch.step
        self.samples = batch.samples
        self.micro_batches = batch.micro_batches
        self.finished = False
        self._open_share = open_share
        self._advance = advance
        self._begun = False
        self._participants: Sequence[reducer.StepParticipant] = ()
        self._current: tuple[MicroBatch, bool] | None = None
        self._losses: list[torch.Tensor] = []
        self._loss = 0.0

    def __repr__(self) -> str:
        return f"<step {self.index} of epoch {self.epoch}>"

    def __iter__(self) -> Iterator[Any]:
        if self._begun:
            raise RuntimeError(f"{self} has been iterated over already; take the next step from the loader")
        self._begun = True
        share = self._open_share()
        self._participants = reducer.active()
        for participant in self._participants:
            participant.begin_step(self.micro_batches)
        for observer in observing.observers():
            observer.loading()
        try:
            for micro_batch, last, data in share:
                self._current = (micro_batch, last)
                yield from self._run(micro_batch, data)
        except BaseException:  # one that closes this generator too: the loop was left
            for participant in self._participants:
                participant.abandon_step()
            raise
        finally:
            self._current = None
        for observer in observing.observers():
            observer.reducing()
        stages.enter(Stage.REDUCING)
        self._reduce()
        stages.enter(Stage.UPDATING)
        self._advance()
        seed_for(Purpose.AFTER_STEP, self._seed, self.epoch, self.index)
        self.finished = True
        for observer in observing.observers():
            observer.reduced(self._loss)

    def _run(self, micro_batch: MicroBatch, data: Any) -> Iterator[Any]:
        self._losses.append(torch.zeros((), dtype=torch.float64))
        seed_for(Purpose.MICRO_BATCH, self._seed, self.epoch, self.index, micro_batch.index)
        with contextlib.ExitStack() as observed:
            for observer in observing.observers():
                observed.enter_context(observer.micro_batch(self.epoch, micro_batch.positions.start, data))
            yield data
        for participant in self._participants:
            participant.after_micro_batch(micro_batch.weight)

    def _reduce(self) -> None:
        losses = [float(loss) for loss in self._losses]
        if not self._participants:
            self._loss = exact_sum(losses)
            return
        capacity = -(-self.micro_batches // world.size())
        header = reducer.exchange(
            [participant.report() for participant in self._participants], losses, capacity
        )
        for participant, reports in zip(self._participants, header.reports, strict=True):
            participant.finish_step(reports)
        self._loss = header.loss

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
        for participant in self._participants:
            participant.before_backward(micro_batch.weight, last, scaled=scaler is not None)
        alone = not any(isinstance(participant, reducer.BucketReducer) for participant in self._participants)
        scaled = loss * micro_batch.weight if alone else loss  # reducers weight the gradients themselves
        for observer in observing.observers():
            observer.before_backward()
        torch.autograd.backward(scaled if scaler is None else scaler.scale(scaled), retain_graph=retain_graph)
        for participant in self._participants:
            participant.after_backward()
        self._losses[-1] = self._losses[-1] + loss.detach().double() * micro_batch.weight

    @property
    def micro_batch(self) -> MicroBatch:
        """The micro-batch that the loop is at: its index in the batch, its samples' positions and weight.

        Raises:
            RuntimeError: outside the loop over the step.
        """
        if self._current is None:
            raise RuntimeError(f"no micro-batch outside the loop over {self}; ask inside it")
        return self._current[0]

    @property
    def loss(self) -> float:
        """Mean loss over the whole batch's samples, the same on every worker.

        Without a `DistributedOptimizer` or a model in a `TorchState` nothing is exchanged, and it is this
        worker's share of that mean.

        Raises:
            RuntimeError: the loop over the step has not ended.
        """
        if not self.finished:
            raise RuntimeError(
                f"the loss of {self} is known when the loop over it has ended; read it after that"
            )
        return self._loss
