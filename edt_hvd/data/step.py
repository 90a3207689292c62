"""One optimizer step as a training loop sees it: micro-batches, weighted losses, a reduction a pass."""

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from typing import Any

import numpy as np
import torch

from edt_hvd import observing
from edt_hvd.data.batching import Batch, MicroBatch
from edt_hvd.data.seeding import Purpose, seed_for
from edt_hvd.reduction import agreement, reducer, usage_checks
from edt_hvd.reduction.header import exact_sum
from edt_hvd.reduction.participant import StepParticipant
from edt_hvd.world import stages, world
from edt_hvd.world.stages import Stage

Fetched = tuple[MicroBatch, bool, Any]
"""A micro-batch: which one, whether it is this worker's last of the step, and its collated samples."""

Share = Iterator[Fetched]
"""A worker's micro-batches of a step."""


class _Loop(Enum):
    """The latest loop over a step; `LEFT` until its gradients are reduced."""

    NONE = auto()
    RUNNING = auto()
    LEFT = auto()
    ENDED = auto()


class Step:
    """One optimizer step: iterate over it, to the end, for this worker's micro-batches.

    Every micro-batch is what the collate function made of its samples. A worker may have none in a step;
    its loop then runs zero times and it still takes part in the reduction, which happens when the loop
    ends. After that every parameter's gradient is that of the whole batch's mean loss.

    Iterating over it again, after an optimizer's step for instance, is another *pass*: over the same
    micro-batches, with random numbers of its own and a reduction at its end. Its gradients take the place of
    earlier ones of the same optimizer; an optimizer whose parameters get none in a pass keeps what it has.

    Attributes:
        epoch: number of the epoch, from 0.
        index: number of the step in the epoch, from 0.
        samples: samples in the whole batch, over all workers.
        micro_batches: micro-batches in the whole batch, over all workers.
        passes: finished passes.
        committed: the state that the loader is part of has been committed since the first pass.
    """

    def __init__(
        self,
        seed: int,
        epoch: int,
        batch: Batch,
        checksum: int,
        open_share: Callable[[int], Share],
        end_pass: Callable[[int, float], None],
        is_checked: bool = False,
    ) -> None:
        """Make a step.

        Args:
            seed: of its random numbers.
            epoch: number of the epoch.
            batch: the samples of all workers.
            checksum: 32 bits of the order of the epoch's samples, which must be the same on every worker.
            open_share: begins to load this worker's micro-batches for the pass of that number, from 0.
            end_pass: is called with the number of the pass and the batch's mean loss.
            is_checked: look for mistakes of the script that cost time to find.
        """
        self._seed = seed
        self.epoch = epoch
        self.index = batch.step
        self.samples = batch.samples
        self.micro_batches = batch.micro_batches
        self._batch = batch
        self.passes = 0
        self.committed = False
        self._checksum = np.array([checksum], dtype=np.uint32).view(np.int32)
        self._open_share = open_share
        self._end_pass = end_pass
        self._is_checked = is_checked
        self._loop = _Loop.NONE
        self._participants: Sequence[StepParticipant] = ()
        self._current: tuple[MicroBatch, bool] | None = None
        self._losses: list[torch.Tensor] = []
        self._loss = 0.0
        self._optimizer_steps = 0

    def __repr__(self) -> str:
        return f"<step {self.index} of epoch {self.epoch}>"

    @property
    def finished(self) -> bool:
        """Whether a pass has ended and none has been begun since."""
        return self._loop is _Loop.ENDED

    @property
    def is_in_loop(self) -> bool:
        """Whether a loop over it is under way."""
        return self._loop is _Loop.RUNNING

    @property
    def is_unused(self) -> bool:
        """Whether no optimizer has stepped since the last pass, although one has gradients of it."""
        return (
            self.finished
            and self._optimizer_steps == usage_checks.optimizer_steps()
            and reducer.has_unused_gradients()
        )

    def __iter__(self) -> Iterator[Any]:
        """Begin a pass, and give its micro-batches.

        Raises:
            RuntimeError: within another loop over it, after one that was left, or after a commit.
            TypeError: it is unpacked, as by ``for inputs, targets in state.loader``.
        """
        usage_checks.refuse_unpacking(sys._getframe(1))
        return self._pass()

    def _pass(self) -> Iterator[Any]:
        self._check_may_begin()
        number = self.passes
        usage_checks.note_pass(number)
        share = self._open_share(number)
        self._loop, self._losses = _Loop.RUNNING, []
        self._participants = reducer.active()
        for participant in self._participants:
            participant.begin_pass(self.micro_batches, again=number > 0)
        for observer in observing.observers():
            observer.loading()
        try:
            with usage_checks.in_loop():
                for micro_batch, last, data in share:
                    self._current = (micro_batch, last)
                    yield from self._run(number, micro_batch, data)
        except BaseException:  # one that closes this generator too: the loop was left
            for participant in self._participants:
                participant.abandon_pass()
            raise
        finally:
            self._current, self._loop = None, _Loop.LEFT
        for observer in observing.observers():
            observer.reducing()
        stages.enter(Stage.REDUCING)
        self._reduce()
        stages.enter(Stage.UPDATING)
        self._end_pass(number, self._loss)
        seed_for(Purpose.AFTER_STEP, self._seed, self.epoch, self.index, *_further(number))
        self.passes += 1
        self._loop, self._optimizer_steps = _Loop.ENDED, usage_checks.optimizer_steps()
        for observer in observing.observers():
            observer.reduced(self._loss)

    def _check_may_begin(self) -> None:
        if self.is_in_loop:
            raise RuntimeError(
                f"a loop over {self} inside another one; pass over it again when that has ended"
            )
        if self._loop is _Loop.LEFT:
            raise RuntimeError(
                f"{self} is passed over again after a loop that was left before its end; it is begun anew "
                "when the loop over the loader is"
            )
        if self.committed:
            raise RuntimeError(
                f"another pass over {self} after state.commit(): a resize at that commit would leave it out; "
                "commit once, after the step's last pass"
            )

    def _run(self, number: int, micro_batch: MicroBatch, data: Any) -> Iterator[Any]:
        self._losses.append(torch.zeros((), dtype=torch.float64))
        index = (self.index, micro_batch.index, *_further(number))
        seed_for(Purpose.MICRO_BATCH, self._seed, self.epoch, *index)
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
        reports = [self._checksum, *(participant.report() for participant in self._participants)]
        header = agreement.exchange(reports, losses, self._batch.most(world.size()))
        self._check_order(header.reports[0][:, 0].tolist())
        for participant, found in zip(self._participants, header.reports[1:], strict=True):
            participant.finish_pass(found)
        self._loss = header.loss

    def _check_order(self, checksums: Sequence[int]) -> None:
        others = [rank for rank, checksum in enumerate(checksums) if checksum != checksums[0]]
        if others:
            raise RuntimeError(
                f"the workers do not use the same samples in epoch {self.epoch}: rank "
                f"{', '.join(map(str, others))} has others than rank 0. A loader that is shuffled or sampled "
                "belongs into the TorchState, or workers that join begin with its first epoch; the order of "
                "a sampler must follow from its generator, the global random numbers or set_epoch(), and "
                "from values of the state; and all workers must see the same files"
            )

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
        if self._is_checked:
            usage_checks.check_loss(loss, self.micro_batches)
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
        """Mean loss over the whole batch's samples in the last pass, the same on every worker.

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


def _further(number: int) -> tuple[int, ...]:
    """What is added to the seeds of a pass but the first."""
    return (number,) if number else ()
