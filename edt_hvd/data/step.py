"""One optimizer step as a training loop sees it: micro-batches, weighted losses, a reduction a pass."""

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from typing import Any

import numpy as np
import torch

from edt_hvd import observing
from edt_hvd.data.batching import Batch, MicroBatch
from edt_hvd.data.losses import PassLosses, checked_weight
from edt_hvd.data.randomness.seeding import Purpose, seed_for
from edt_hvd.reduction import agreement, participants, usage_checks
from edt_hvd.reduction.grad_modes import ordinary_tensors
from edt_hvd.reduction.gradients import reducer
from edt_hvd.reduction.header import exact_sum
from edt_hvd.reduction.participants import StepParticipant
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


def _no_step() -> "Step | None":
    return None


_latest: "Callable[[], Step | None]" = _no_step
"""The step whose pass was begun last."""


class Step:
    """One optimizer step. Iterate over it to its end for this worker's micro-batches.

    Every micro-batch is the output of the collate function for its samples. A worker may have none in a
    step. Its loop then runs zero times, and it still takes part in the reduction at the end of the loop.
    After the loop every parameter's gradient is that of the whole batch's mean loss.

    Iterating again, for example after an optimizer step, is another *pass* over the same micro-batches, with
    its own random numbers and a reduction at its end. Its gradients replace the step's earlier ones of the
    same optimizer. An optimizer whose parameters get no gradients in a pass keeps those it has. Gradients of
    passes over different steps, for example of two loaders, add up until an optimizer steps or the state is
    committed.

    Attributes:
        epoch: number of the epoch, from 0.
        index: number of the step in the epoch, from 0.
        samples: samples in the whole batch, over all workers.
        micro_batches: micro-batches in the whole batch, over all workers.
        passes: finished passes.
        committed: whether the loader's state has been committed since the first pass.
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
        compare: Callable[[], None] | None = None,
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
            compare: compares the workers' datasets, in its first pass; a collective.
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
        self._compare = compare
        self._loop = _Loop.NONE
        self._participants: Sequence[StepParticipant] = ()
        self._current: tuple[MicroBatch, bool] | None = None
        self._losses = PassLosses()
        self._is_empty = False
        self._loss = 0.0
        self._optimizer_steps = 0

    def __repr__(self) -> str:
        return f"<step {self.index} of epoch {self.epoch}>"

    @property
    def finished(self) -> bool:
        """Whether a pass has ended and no other has begun since."""
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
            and any(each.must_be_stepped for each in reducer.active())
        )

    def __iter__(self) -> Iterator[Any]:
        """Begin a pass, and yield its micro-batches.

        Raises:
            RuntimeError: inside another loop over the step, after a loop that was left early, or after a
                commit.
            TypeError: the step is unpacked, as in ``for inputs, targets in state.loader``.
        """
        usage_checks.refuse_unpacking(sys._getframe(1))
        return self._pass()

    def _pass(self) -> Iterator[Any]:
        global _latest
        self._check_may_begin()
        after_other = _latest() is not self
        _latest = weakref.ref(self)
        number = self.passes
        usage_checks.note_pass(number)
        share = self._open_share(number)
        self._loop, self._losses = _Loop.RUNNING, PassLosses()
        self._participants = participants.active()
        try:
            with ordinary_tensors():
                for participant in self._participants:
                    participant.begin_pass(self.micro_batches, number > 0, number > 0 and after_other)
            for observer in observing.observers():
                observer.loading()
            with usage_checks.in_loop():
                for micro_batch, last, data in share:
                    self._current = (micro_batch, last)
                    yield from self._run(number, micro_batch, data)
        except BaseException:  # one that closes this generator too: the loop was left
            self._abandon()
            raise
        finally:
            self._current, self._loop = None, _Loop.LEFT
        for observer in observing.observers():
            observer.reducing()
        stages.enter(Stage.REDUCING)
        try:
            with ordinary_tensors():
                self._reduce()
        except BaseException:
            self._abandon()
            raise
        stages.enter(Stage.UPDATING)
        self._end_pass(number, 0.0 if self._is_empty else self._loss)
        seed_for(Purpose.AFTER_STEP, self._seed, self.epoch, self.index, *_pass_seed_suffix(number))
        self.passes += 1
        self._loop, self._optimizer_steps = _Loop.ENDED, usage_checks.optimizer_steps()
        for observer in observing.observers():
            observer.reduced(self._loss)

    def _abandon(self) -> None:
        with ordinary_tensors():
            for participant in self._participants:
                participant.abandon_pass()

    def _check_may_begin(self) -> None:
        if self.is_in_loop:
            raise RuntimeError(
                f"a loop over {self} inside another one; pass over it again when that has ended"
            )
        other = _latest()
        if other is not None and other is not self and other.is_in_loop and other._participants:
            raise RuntimeError(
                f"a loop over {self} inside the loop over {other} of another loader, as by zip() of "
                "two steps; loop over one after the other: their gradients add up until optimizer.step()"
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
        self._losses.begin_micro_batch()
        index = (self.index, micro_batch.index, *_pass_seed_suffix(number))
        seed_for(Purpose.MICRO_BATCH, self._seed, self.epoch, *index)
        with contextlib.ExitStack() as observed:
            for observer in observing.observers():
                observed.enter_context(observer.micro_batch(self.epoch, micro_batch.positions.start, data))
            yield data
        with ordinary_tensors():
            for participant in self._participants:
                participant.after_micro_batch(micro_batch.weight)

    def _reduce(self) -> None:
        if not self._participants:
            self._loss = exact_sum(self._losses.numbers())
            return
        reports = [self._checksum, *(participant.report() for participant in self._participants)]
        header = agreement.exchange(
            reports,
            self._losses.with_weights(),
            self._batch.max_per_worker(world.size()),
            participants.describe,
        )
        self._check_order(header.reports[0][:, 0].tolist())
        if self._compare is not None:
            self._compare()
            self._compare = None
        for participant, rows in zip(self._participants, header.reports[1:], strict=True):
            participant.finish_pass(rows, header.weight or None)
        self._loss, self._is_empty = header.loss, header.weight == 0

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
        self,
        loss: torch.Tensor,
        *,
        weight: float | torch.Tensor | None = None,
        scaler: torch.amp.GradScaler | None = None,
        retain_graph: bool = False,
    ) -> None:
        """Add a micro-batch's gradients to the step's, weighted by its share of the batch's samples.

        May be called more than once in a micro-batch; the losses add up.

        Args:
            loss: mean loss over the micro-batch's samples, or over what `weight` counts; one element.
            weight: number of tokens, pixels or pairs in the micro-batch, if the loss is a mean over these.
                Gradients and `Step.loss` are then means over all of them in the whole batch. Pass it in every
                call of a step. With 0, the call has no effect.
            scaler: scales the gradients, not `Step.loss`; pass it here instead of calling ``scaler.scale``.
            retain_graph: keep the graph for another backward through it.

        Raises:
            RuntimeError: outside the loop over the step; or a weight without a `DistributedOptimizer`.
            TypeError: a loss that is not a tensor.
            ValueError: a weight that is negative or not finite.
            GradientError: the weight differs from that of an earlier call in this micro-batch. A weight for
                only some micro-batches of a step is detected when the loop over the step ends.
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
        factor = micro_batch.weight if weight is None else checked_weight(weight, self._is_reduced)
        self._losses.note_weight(None if weight is None else factor)
        if not factor:
            return
        if self._is_checked:
            usage_checks.check_loss(loss, self.micro_batches)
        for participant in self._participants:
            participant.before_backward(factor, last, scaled=scaler is not None)
        scaled = loss if self._is_reduced else loss * factor  # reducers weight the gradients themselves
        for observer in observing.observers():
            observer.before_backward()
        torch.autograd.backward(scaled if scaler is None else scaler.scale(scaled), retain_graph=retain_graph)
        for participant in self._participants:
            participant.after_backward()
        self._losses.add(loss, factor)

    def collect(self, body: Callable[[], torch.Tensor]) -> None:
        """Add a micro-batch's gradients to the step's, computed by code that calls ``loss.backward()``.

        Use it instead of `backward` for code that you do not write, such as a trainer's. While `body` runs,
        ``.grad`` has the gradients of this micro-batch alone, which it may clip or change.

        Args:
            body: computes the gradients, and returns the mean loss over the micro-batch's samples, a tensor
                with one element.

        Raises:
            RuntimeError: outside the loop over the step, or without a `DistributedOptimizer`.
            GradientError: an optimizer steps in `body`.
        """
        micro_batch = self.micro_batch
        assert self._current is not None
        if not self._is_reduced:
            raise RuntimeError(
                f"collect() in the loop over {self} without a DistributedOptimizer; pass the optimizer to "
                "edt_hvd.DistributedOptimizer"
            )
        self._losses.note_weight(None)
        for observer in observing.observers():
            observer.before_backward()
        for participant in self._participants:
            participant.begin_collecting()
        with usage_checks.collecting():
            loss = body()
        with ordinary_tensors():
            for participant in self._participants:
                participant.before_backward(micro_batch.weight, self._current[1], scaled=False)
                participant.collect()
                participant.after_backward()
        self._losses.add(loss.reshape(()), micro_batch.weight)

    @property
    def _is_reduced(self) -> bool:
        """Whether a distributed optimizer takes part."""
        return any(isinstance(participant, reducer.BucketReducer) for participant in self._participants)

    @property
    def micro_batch(self) -> MicroBatch:
        """The current micro-batch: its index in the batch, its samples' positions and its weight.

        Raises:
            RuntimeError: outside the loop over the step.
        """
        if self._current is None:
            raise RuntimeError(f"no micro-batch outside the loop over {self}; ask inside it")
        return self._current[0]

    @property
    def loss(self) -> float:
        """Mean loss over the whole batch's samples in the last pass, the same on every worker.

        Without a `DistributedOptimizer` or a model in a `TorchState` the workers exchange nothing, and the
        value is this worker's share of that mean.

        Raises:
            RuntimeError: the loop over the step has not ended.
        """
        if not self.finished:
            raise RuntimeError(
                f"the loss of {self} is known when the loop over it has ended; read it after that"
            )
        return self._loss


def _pass_seed_suffix(number: int) -> tuple[int, ...]:
    """What is added to the seeds of a pass but the first."""
    return (number,) if number else ()
