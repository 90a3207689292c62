"""Summing the gradients of one optimizer: what all reductions have in common.

A reducer takes every gradient as autograd finishes it, so that ``.grad`` is None inside the loop over a step;
after the loop it is the gradient of the whole effective batch's mean loss.
"""

import itertools
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from typing import Any, Generic

import numpy as np
import torch
from typing_extensions import override

from edt_hvd.errors import GradientError
from edt_hvd.reduction import header, participants
from edt_hvd.reduction.comparison import Description
from edt_hvd.reduction.grad_modes import ordinary_tensors
from edt_hvd.reduction.gradients import averaging
from edt_hvd.reduction.gradients.accumulated import AccumulatedGradients
from edt_hvd.reduction.gradients.bucket import BUCKET_BYTES
from edt_hvd.reduction.gradients.layout import BucketT, Layout
from edt_hvd.reduction.header import Report
from edt_hvd.reduction.participants import StepParticipant


def active() -> "list[BucketReducer[Any]]":
    """The reducers of all distributed optimizers that are alive, in the order in which they were made."""
    return [each for each in participants.active() if isinstance(each, BucketReducer)]


def not_reduced(parameters: Iterable[torch.nn.Parameter]) -> list[torch.nn.Parameter]:
    """Those of the parameters that no distributed optimizer has."""
    reducers = active()
    return [each for each in parameters if not any(reducer.has(each) for reducer in reducers)]


def reducers_of(parameters: Sequence[torch.nn.Parameter]) -> "list[BucketReducer[Any]]":
    """The reducers that have one of the parameters."""
    return [each for each in active() if any(map(each.has, parameters))]


class _Phase(Enum):
    """Where a reducer is in the loop over a step."""

    BETWEEN = auto()
    """The last loop has ended, or none has begun in this world."""
    RUNNING = auto()
    COLLECTING = auto()
    """In the loop, and the gradients in ``.grad`` are not taken yet."""
    LEFT = auto()
    """The last loop was left before its end."""


class BucketReducer(StepParticipant, Generic[BucketT]):
    """Sums the gradients of one optimizer, bucket by bucket, overlapped with the last backward pass.

    A parameter of several optimizers belongs to the reducer that was registered last. All of them step on
    the gradient that it leaves.

    The overlap begins once a step has shown that every parameter gets its gradient at once, in one backward
    pass a micro-batch; before that, and after a step in which one did not, everything is reduced when the
    loop over the step ends. Gradients that come after their bucket was launched are reduced on their own. A
    bucket for which no worker has a gradient is not reduced.

    Args:
        parameters: gives the optimizer's parameters; asked at every step, since they may change.
        bucket_bytes: see `BUCKET_BYTES`.

    Attributes:
        description: gives what must be the same on every worker, by the place of this reducer.
        must_be_stepped: the last pass has reduced gradients on which a script is bound to step.
        steps: of the optimizer since the last pass; the same on every worker.
    """

    def __init__(
        self,
        parameters: Callable[[], list[torch.nn.Parameter]],
        bucket_bytes: int = BUCKET_BYTES,
    ) -> None:
        self._parameters = parameters
        self._bucket_bytes = bucket_bytes
        self.description: Callable[[int], Description] = lambda place: {}
        self._layout = Layout[BucketT]()
        self._spare = Layout[BucketT]()
        """The one before, while no parameter is trainable."""
        self._hooks: dict[torch.nn.Parameter, Any] = {}
        self._accumulated = AccumulatedGradients[BucketT]()
        self._phase = _Phase.BETWEEN
        self.must_be_stepped = False
        self.steps = 0
        self._weight: float | None = None
        self._divisor: float | None = None
        self._scaled: bool | None = None
        self._last = self._launching = False
        self._repeated = False
        self._overlapping = False
        self._hook_all()

    @override
    def reset(self) -> None:
        for bucket in self._buckets:
            bucket.handles.clear()
        self._accumulated, self._phase = AccumulatedGradients(), _Phase.BETWEEN
        self.must_be_stepped = self._last = self._launching = False
        self._weight = None
        self.steps = 0

    @override
    def describe(self) -> Description:
        return self.description(self.place)

    def has(self, parameter: torch.nn.Parameter) -> bool:
        """Whether its optimizer has this parameter."""
        return parameter in self._hooks

    @abstractmethod
    def _new_bucket(self, parameters: Sequence[torch.nn.Parameter]) -> BucketT:
        """A bucket of this reduction."""

    @property
    def place(self) -> int:
        """How many reducers that are alive were registered before it; the same on every worker."""
        return sum(1 for _ in itertools.takewhile(lambda each: each is not self, active()))

    # The loop over a step.

    @override
    def begin_loop(self) -> None:
        self.steps = 0

    @override
    def begin_pass(self, micro_batches: int, again: bool = False, after_other: bool = False) -> None:
        parameters = self._own_trainable()
        self._accumulated.begin_pass(self._layout, parameters, again, after_other, bool(self._scaled))
        self._lay_out(parameters)
        for bucket in self._buckets:
            bucket.begin()
        for parameter in self._trainable:
            parameter.grad = None
        self._repeated = self.must_be_stepped = False
        self._phase = _Phase.RUNNING

    @override
    def before_backward(self, weight: float, last: bool, scaled: bool) -> None:
        self._weight, self._scaled = weight, scaled
        self._last, self._launching = last, last and self._overlapping

    @override
    def after_backward(self) -> None:
        self._weight = None
        self._last = self._launching = False

    @override
    def begin_collecting(self) -> None:
        self._phase = _Phase.COLLECTING

    @override
    def collect(self) -> None:
        self._phase = _Phase.RUNNING
        for bucket in self._buckets:
            for parameter in bucket.parameters:
                if parameter.grad is not None:
                    self._take(parameter)

    @override
    def abandon_pass(self) -> None:
        self._accumulated, self._phase = AccumulatedGradients(), _Phase.LEFT

    @override
    def report(self) -> Report:
        """How many gradients each trainable parameter had, which buckets got some late, and two numbers.

        These are whether there are gradients from outside the loop over a step, and `steps`.

        Raises:
            GradientError: the loop has put gradients into ``.grad`` by itself.
        """
        written = sum(parameter.grad is not None for parameter in self._trainable)
        if written:
            raise GradientError(
                f"the loop over a step's micro-batches has set .grad of {written} parameters, which no other "
                "worker would know of; call step.backward(loss) in it, and change gradients after it"
            )
        located = [self._layout.bucket_of[parameter] for parameter in self._trainable]
        late = [bucket.late is not None for bucket in self._buckets]
        addends = [bucket.addends[index] for bucket, index in located]
        return np.array([*addends, *late, self._accumulated.has_unreduced, self.steps], dtype=np.int32)

    @override
    def finish_pass(self, reports: Report, divisor: float | None = None) -> None:
        """Reduce.

        Raises:
            GradientError: the optimizer has not stepped on every worker since the last pass; only some have
                gradients from outside the loop over a step; or the pass has gradients for a step whose
                earlier ones have been added to another step's.
        """
        header.check_steps(reports[:, -1].tolist())
        header.check_outside(reports[:, -2].tolist())
        self.steps, self._divisor = 0, divisor
        addends, late = np.split(reports[:, :-2].sum(axis=0), [len(self._trainable)])
        has_addends = bool(addends.any())
        if self._accumulated.replaces_added and has_addends:
            raise GradientError(
                "another pass over a step after one over another loader's step: its gradients would replace "
                "the step's earlier ones, which the other's have been added to; call optimizer.step() or "
                "optimizer.zero_grad() before it, or end the passes over one step before the next"
            )
        self._reduce(addends, late)
        if any(len(bucket.waiting_for) < len(bucket.parameters) for bucket in self._buckets):
            self._overlapping = not self._repeated
        self._accumulated.finish_pass(has_addends)
        self._phase = _Phase.BETWEEN
        self.must_be_stepped = has_addends and self._scaled is False  # a scaler may leave a step out

    # The optimizer.

    def before_optimizer_step(self) -> None:
        """Average what backward passes outside the loop over a step have left in ``.grad``.

        That is all of it in a loop without a loader's steps, as with Horovod's optimizer. What was added to
        the gradients of a step after its loop is mostly the same on every worker, such as a penalty for large
        weights. They are left as they are then, bit by bit. Otherwise their mean is taken, which depends on
        how many workers there are.

        Raises:
            GradientError: inside the loop over a step's micro-batches, or after one that was left early; or
                gradients that were stepped on have been added to outside of it.
        """
        if self._phase in (_Phase.RUNNING, _Phase.COLLECTING):
            raise GradientError(
                "optimizer.step() inside the loop over a step's micro-batches: the gradients are those of a "
                "part of the batch; call it once, after that loop"
            )
        if self._phase is _Phase.LEFT and not self._accumulated.has_unreduced:
            raise GradientError(
                "optimizer.step() after a loop over a step's micro-batches that was left before its end, by "
                "break for instance: there are no gradients of the whole batch; let that loop run to its end"
            )
        if self._accumulated.has_unreduced:
            self._accumulated.check_not_used(self._trainable)
            self._average_gradients()
        self._accumulated.note_step()
        self.must_be_stepped = False
        self.steps += 1

    @override
    def note_commit(self) -> None:
        self.expire()

    def expire(self) -> None:
        """The gradients that are there have been used: what comes next takes their place."""
        self._accumulated.expire(self._buckets)

    def _average_gradients(self) -> None:
        with ordinary_tensors():
            self._lay_out(self._own_trainable())
        if averaging.average(self._layout, is_compared=self._accumulated.has_reduced):
            self._note_difference()

    def _note_difference(self) -> None:
        """What backward passes after the loop over a step have added differs between the workers."""

    # Reducing.

    def _reduce(self, addends: Report, late: Report) -> None:
        """Reduce every bucket that some worker has touched; `addends` and `late` count all workers'."""
        count = dict(zip(self._trainable, addends.tolist(), strict=True))
        late_buckets = [bucket for bucket, came in zip(self._buckets, late, strict=True) if came]
        wanted = [bucket for bucket in self._buckets if any(count[p] for p in bucket.parameters)]
        for bucket in wanted:
            if not bucket.launched:
                bucket.launch()
        for bucket in wanted:
            bucket.synchronize()
            if bucket in late_buckets:
                bucket.reduce_late()
            self._read(bucket)
            for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
                parameter.grad = view if count[parameter] else None

    def _read(self, bucket: BucketT) -> None:
        """Turn the bucket's sums into gradients in `bucket.flat`."""

    def _take(self, parameter: torch.nn.Parameter) -> None:
        """Autograd has finished the gradient of `parameter`."""
        gradient = parameter.grad
        if self._phase in (_Phase.BETWEEN, _Phase.LEFT):
            self._accumulated.note_outside(self._layout, parameter)
            return
        if self._phase is _Phase.COLLECTING or gradient is None or parameter not in self._layout.bucket_of:
            return
        if self._weight is None:
            raise GradientError(
                "loss.backward() inside the loop over a step's micro-batches: its gradients do not carry the "
                "micro-batch's weight; call step.backward(loss) instead"
            )
        if gradient.is_sparse:
            raise GradientError("sparse gradients cannot be reduced; build the layer with sparse=False")
        bucket, index = self._layout.bucket_of[parameter]
        bucket.add(index, gradient, self._weight)
        parameter.grad = None
        if self._last:
            self._arrived(bucket, index)

    def _arrived(self, bucket: BucketT, index: int) -> None:
        """The last micro-batch has added to the bucket."""
        self._repeated = self._repeated or index not in bucket.waiting_for
        bucket.waiting_for.discard(index)
        if self._launching and not bucket.waiting_for and not bucket.launched:
            bucket.launch()

    # The layout.

    @property
    def _buckets(self) -> Sequence[BucketT]:
        return self._layout.buckets

    @property
    def _trainable(self) -> Sequence[torch.nn.Parameter]:
        return self._layout.parameters

    def _own_trainable(self) -> list[torch.nn.Parameter]:
        later = self._of_later_reducers()
        return [p for p in self._parameters() if p.requires_grad and p not in later]

    def _lay_out(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        """Put the trainable parameters into buckets, anew when they are others than last time."""
        if not self._layout.is_of(parameters):
            self._hook_all()
            previous = self._layout
            previous.drop_gradients()  # one frozen now must not be stepped on an old gradient
            self._layout = (
                self._spare
                if self._spare.is_of(parameters)
                else Layout.of(parameters, self._bucket_bytes, self._new_bucket)
            )
            self._spare = Layout() if parameters else previous
        for number, bucket in enumerate(self._buckets):
            bucket.name = f"edt.{self.place}.bucket.{number}"

    def _of_later_reducers(self) -> set[torch.nn.Parameter]:
        later = itertools.takewhile(lambda each: each is not self, reversed(active()))
        return {parameter for each in later for parameter in each._parameters()}

    def _hook_all(self) -> None:
        for parameter in self._parameters():
            if parameter.requires_grad and parameter not in self._hooks:
                self._hooks[parameter] = parameter.register_post_accumulate_grad_hook(self._hook())  # type: ignore[no-untyped-call]

    def _hook(self) -> Callable[[torch.Tensor], None]:
        """A hook that does not keep this reducer alive."""
        reference = weakref.ref(self)

        def take(parameter: torch.Tensor) -> None:
            reducer = reference()
            if reducer is not None:
                reducer._take(parameter)  # type: ignore[arg-type]

        return take
