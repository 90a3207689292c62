"""Summing gradients over micro-batches and workers: what all reductions have in common.

The loop over a step calls its participants: one reducer for every distributed optimizer, and `buffers` for
the buffers of models. A reducer takes every gradient as autograd finishes it, so that ``.grad`` is None
inside the loop; after the loop it is the gradient of the whole effective batch's mean loss.
"""

import gc
import itertools
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic

import horovod.torch as hvd
import numpy as np
import torch
from typing_extensions import override

from edt_hvd.errors import GradientError
from edt_hvd.reduction import agreement, header
from edt_hvd.reduction.bits import as_real, fingerprint
from edt_hvd.reduction.bucket import BUCKET_BYTES, BucketT, Layout, cut
from edt_hvd.reduction.comparison import Description
from edt_hvd.reduction.grad_modes import ordinary_tensors
from edt_hvd.reduction.header import Report
from edt_hvd.reduction.participant import StepParticipant
from edt_hvd.world import stages

_FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
"""Of which gradients, or the parts of complex ones, can be summed."""

_registered: "list[weakref.ref[StepParticipant]]" = []
_may_have_stale = False


def register(participant: StepParticipant) -> None:
    """Have `participant` take part in the steps of every loader, if it does not yet."""
    global _may_have_stale
    if participant not in active():
        _may_have_stale = True
        _registered.append(weakref.ref(participant))


def collect_stale() -> None:
    """Drop participants whose models and optimizers are no longer referred to.

    All workers must have the same participants, but each runs its garbage collector at other times.
    """
    global _may_have_stale
    if _may_have_stale:
        gc.collect()
    _may_have_stale = False


def active() -> tuple[StepParticipant, ...]:
    """The participants that are alive, in the order in which they were registered."""
    living = [(reference, each) for reference in _registered if (each := reference()) is not None]
    _registered[:] = [reference for reference, _ in living]
    return tuple(each for _, each in living)


def describe() -> Description:
    """What must be the same on every worker, of all participants."""
    return {what: value for each in active() for what, value in each.describe().items()}


def not_reduced(parameters: Iterable[torch.nn.Parameter]) -> list[torch.nn.Parameter]:
    """Those of the parameters that no distributed optimizer has."""
    reducers = _bucket_reducers()
    return [each for each in parameters if not any(reducer.has(each) for reducer in reducers)]


def reducers_of(parameters: Sequence[torch.nn.Parameter]) -> "list[BucketReducer[Any]]":
    """The reducers that have one of the parameters."""
    return [each for each in _bucket_reducers() if any(map(each.has, parameters))]


def has_unused_gradients() -> bool:
    """Whether the last pass has reduced gradients on which a script is bound to step."""
    return any(participant.must_be_stepped for participant in _bucket_reducers())


def _bucket_reducers() -> "list[BucketReducer[Any]]":
    return [participant for participant in active() if isinstance(participant, BucketReducer)]


def begin_loop() -> None:
    """A loop over a loader begins: from here on the workers' optimizers step alike."""
    agreement.note_loop()
    for each in _bucket_reducers():
        each.steps = 0


def note_commit() -> None:
    """The state is committed: gradients that no optimizer has stepped on are not part of it."""
    for each in _bucket_reducers():
        each.expire()


def sends_headers() -> bool:
    """Whether every optimizer step sends a header, because some optimizer is distributed."""
    return bool(_bucket_reducers())


def reset() -> None:
    """A new world was formed."""
    agreement.reset()
    for participant in active():
        participant.reset()


def _check_types(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Check that the gradients of these parameters can be summed.

    Raises:
        GradientError: they are of another type, such as an 8-bit float.
    """
    for parameter in parameters:
        if as_real(parameter.detach()).dtype not in _FLOATS:
            known = ", ".join(str(dtype).removeprefix("torch.") for dtype in _FLOATS)
            raise GradientError(
                f"a parameter of {parameter.dtype} and shape {list(parameter.shape)} is trainable, and "
                f"gradients of that type cannot be summed, only of {known} and complex numbers of these; "
                "keep it in one of them and convert it in the forward pass, or freeze it with "
                "requires_grad_(False)"
            )


def _are_finite(gradients: Iterable[torch.Tensor]) -> bool:
    """Whether all elements are, with one question to each device."""
    by_device = dict[torch.device, list[torch.Tensor]]()
    for each in gradients:
        by_device.setdefault(each.device, []).append(each.isfinite().all())
    return all(bool(torch.stack(found).all()) for found in by_device.values())


class BucketReducer(StepParticipant, Generic[BucketT]):
    """Sums the gradients of one optimizer, bucket by bucket, overlapped with the last backward pass.

    A parameter of several optimizers belongs to the reducer that was registered last. All of them step on
    the gradient that it leaves.

    The overlap begins once a step has shown that every parameter gets its gradient at once, in one backward
    pass a micro-batch; before that, and after a step in which one did not, everything is reduced when the
    loop over the step ends. Gradients that come after their bucket was launched are reduced on their own. A
    bucket for which no worker has a gradient is not reduced.

    As in torch, gradients add up until the optimizer has stepped: those of passes over different steps, and
    what backward passes outside the loop over a step have left in ``.grad``. A further pass over the same
    step replaces those of that step. Other than in torch, gradients from before the optimizer's last step, or
    the last commit, are not added to.

    Args:
        parameters: gives the optimizer's parameters; asked at every step, since they may change.
        bucket_bytes: see `BUCKET_BYTES`.

    Attributes:
        steps: of the optimizer since the last pass; the same on every worker.
        description: gives what must be the same on every worker, by the place of this reducer.
    """

    def __init__(
        self,
        parameters: Callable[[], list[torch.nn.Parameter]],
        bucket_bytes: int = BUCKET_BYTES,
    ) -> None:
        self._parameters = parameters
        self._bucket_bytes = bucket_bytes
        self.description: Callable[[int], Description] = lambda place: {}
        self._current: Layout[BucketT] = Layout([], [])
        self._spare: Layout[BucketT] = Layout([], [])
        self._hooks: dict[torch.nn.Parameter, Any] = {}
        self._in_pass = self._is_collecting = False
        self.must_be_stepped = False
        self.steps = 0
        self._was_left = False
        self._present: dict[torch.nn.Parameter, torch.Tensor] = {}
        """The gradients that were there when the pass began."""
        self._base: dict[torch.nn.Parameter, torch.Tensor] = {}
        """Those of them that the pass, and further ones over the same step, add to."""
        self._base_unreduced = False
        self._fresh = False
        """Gradients have come since the optimizer's last step and the last commit."""
        self._after_other = False
        self._expired: dict[BucketT, int] = {}
        """The versions of buckets with gradients of passes that have been stepped on."""
        self._added_to_expired = False
        self._reduced = False
        self._unreduced = False
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
        self._in_pass = self._is_collecting = self.must_be_stepped = self._was_left = False
        self._reduced = self._unreduced = self._last = self._launching = False
        self._weight = None
        self._fresh = self._added_to_expired = self._base_unreduced = False
        self._present, self._base, self._expired = {}, {}, {}
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
        return sum(1 for _ in itertools.takewhile(lambda each: each is not self, _bucket_reducers()))

    # The loop over a step.

    @override
    def begin_pass(self, micro_batches: int, again: bool = False, after_other: bool = False) -> None:
        parameters = self._own_trainable()
        found = parameters if self._current.is_of(parameters) else {*self._trainable, *parameters}
        self._present = {p: p.grad for p in found if p.grad is not None}
        self._unreduced = self._unreduced and bool(self._present)
        self._after_other = after_other and self._fresh
        if again:
            self._base = {p: gradient for p, gradient in self._base.items() if p in self._present}
        else:
            self._base = self._to_be_added_to()
            self._unreduced = self._base_unreduced = self._unreduced and bool(self._base)
            self._present = self._base
        self._added_to_expired, self._expired = False, {}
        self._layout(parameters)
        for bucket in self._buckets:
            bucket.begin()
        for parameter in self._trainable:
            parameter.grad = None
        self._repeated = self._was_left = self.must_be_stepped = False
        self._reduced = self._reduced and (again or bool(self._base))
        self._in_pass = True

    def _to_be_added_to(self) -> dict[torch.nn.Parameter, torch.Tensor]:
        """The gradients that a pass over another step adds to; buckets are about to be written to.

        Raises:
            GradientError: a backward pass outside the loop over a step has added to gradients that the
                optimizer has stepped on.
        """
        if not self._fresh or not self._present:
            return {}
        self._refuse_expired()
        if self._scaled and not _are_finite(self._present.values()):
            return {}  # a gradient scaler has left the optimizer's step out
        views = {p: bucket.views[index] for p, (bucket, index) in self._bucket_of.items()}
        return {
            p: gradient.clone() if gradient is views.get(p) else gradient
            for p, gradient in self._present.items()
        }

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
        self._is_collecting = True

    @override
    def collect(self) -> None:
        self._is_collecting = False
        for bucket in self._buckets:
            for parameter in bucket.parameters:
                if parameter.grad is not None:
                    self._accumulated(parameter)

    @override
    def abandon_pass(self) -> None:
        self._in_pass, self._is_collecting, self._was_left = False, False, True
        self._fresh = self._unreduced = self._base_unreduced = False
        self._present, self._base = {}, {}

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
        located = [self._bucket_of[parameter] for parameter in self._trainable]
        late = [bucket.late is not None for bucket in self._buckets]
        addends = [bucket.addends[index] for bucket, index in located]
        return np.array([*addends, *late, self._unreduced, self.steps], dtype=np.int32)

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
        if self._after_other and addends.any():
            raise GradientError(
                "another pass over a step after one over another loader's step: its gradients would replace "
                "the step's earlier ones, which the other's have been added to; call optimizer.step() or "
                "optimizer.zero_grad() before it, or end the passes over one step before the next"
            )
        self._reduce(addends, late)
        if any(len(bucket.waiting_for) < len(bucket.parameters) for bucket in self._buckets):
            self._overlapping = not self._repeated
        if addends.any():
            self._unreduced = self._base_unreduced
            for parameter, gradient in self._base.items():
                parameter.grad = gradient if parameter.grad is None else parameter.grad.add_(gradient)
            self._fresh = True
        else:
            for parameter, gradient in self._present.items():
                parameter.grad = gradient
        self._in_pass, self._reduced, self._present = False, True, {}
        self.must_be_stepped = bool(addends.any()) and self._scaled is False  # a scaler may leave a step out

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
        if self._in_pass:
            raise GradientError(
                "optimizer.step() inside the loop over a step's micro-batches: the gradients are those of a "
                "part of the batch; call it once, after that loop"
            )
        if self._was_left and not self._unreduced:
            raise GradientError(
                "optimizer.step() after a loop over a step's micro-batches that was left before its end, by "
                "break for instance: there are no gradients of the whole batch; let that loop run to its end"
            )
        if self._unreduced:
            self._refuse_expired()
            self._average_gradients()
        self._reduced = self._unreduced = self.must_be_stepped = False
        self.steps += 1

    def expire(self) -> None:
        """The gradients that are there have been used: what comes next takes their place."""
        self._fresh, self._base, self._base_unreduced = False, {}, False
        self._expired = {
            bucket: bucket.flat._version
            for bucket in self._buckets
            if bucket.touched and not bucket.flat.is_inference()
        }

    def _refuse_expired(self) -> None:
        if self._added_to_expired and any(p.grad is not None and p.grad.any() for p in self._trainable):
            raise GradientError(
                "loss.backward() outside the loop over a step's micro-batches has added to gradients that "
                "optimizer.step() has used already; call optimizer.zero_grad() before it"
            )

    def _average_gradients(self) -> None:
        """Average over the workers. A collective."""
        with ordinary_tensors():
            self._layout(self._own_trainable())
        missing: Report = np.array([parameter.grad is None for parameter in self._trainable], dtype=np.int32)
        for bucket in self._buckets:
            for parameter, view in zip(bucket.parameters, bucket.views, strict=True):
                if parameter.grad is None:
                    view.zero_()
                elif parameter.grad is not view:
                    view.copy_(parameter.grad)
                parameter.grad = view
        compared = self._buckets if self._reduced and hvd.size() > 1 else []
        prints = np.array([fingerprint(bucket.flat) for bucket in compared], dtype=np.int64).view(np.int32)
        absent, found = agreement.exchange([missing, prints], describe=describe).reports
        differ = (found != found[0]).any()
        if differ:
            self._note_difference()
        if hvd.size() > 1 and (differ or not compared):
            flats = [bucket.flat.double() if differ else bucket.flat for bucket in self._buckets]
            handles = [
                hvd.allreduce_async_(flat, name=f"{bucket.name}.average", op=hvd.Average)
                for flat, bucket in zip(flats, self._buckets, strict=True)
            ]
            with stages.waiting_for_others():
                for bucket, handle in zip(self._buckets, handles, strict=True):
                    bucket.flat.copy_(hvd.synchronize(handle))
        for parameter, is_absent in zip(self._trainable, absent.min(axis=0).tolist(), strict=True):
            if is_absent:
                parameter.grad = None

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

    def _accumulated(self, parameter: torch.nn.Parameter) -> None:
        """Autograd has finished the gradient of `parameter`."""
        gradient = parameter.grad
        if not self._in_pass:
            self._unreduced = self._fresh = True
            if self._expired and parameter in self._bucket_of:
                bucket, index = self._bucket_of[parameter]
                self._note_addition(bucket, gradient is bucket.views[index])
            return
        if self._is_collecting or gradient is None or parameter not in self._bucket_of:
            return
        if self._weight is None:
            raise GradientError(
                "loss.backward() inside the loop over a step's micro-batches: its gradients do not carry the "
                "micro-batch's weight; call step.backward(loss) instead"
            )
        if gradient.is_sparse:
            raise GradientError("sparse gradients cannot be reduced; build the layer with sparse=False")
        bucket, index = self._bucket_of[parameter]
        bucket.add(index, gradient, self._weight)
        parameter.grad = None
        if self._last:
            self._arrived(bucket, index)

    def _note_addition(self, bucket: BucketT, in_place: bool) -> None:
        """Note whether a gradient was added to one that was stepped on; `zero_grad` writes, too."""
        if in_place and bucket in self._expired:
            self._expired[bucket] += 1
            if bucket.flat._version == self._expired[bucket]:
                self._added_to_expired = True
            else:
                del self._expired[bucket]

    def _arrived(self, bucket: BucketT, index: int) -> None:
        """The last micro-batch has added to the bucket."""
        self._repeated = self._repeated or index not in bucket.waiting_for
        bucket.waiting_for.discard(index)
        if self._launching and not bucket.waiting_for and not bucket.launched:
            bucket.launch()

    # The layout.

    @property
    def _buckets(self) -> list[BucketT]:
        return self._current.buckets

    @property
    def _trainable(self) -> list[torch.nn.Parameter]:
        return self._current.parameters

    @property
    def _bucket_of(self) -> dict[torch.nn.Parameter, tuple[BucketT, int]]:
        return self._current.bucket_of

    def _own_trainable(self) -> list[torch.nn.Parameter]:
        later = self._of_later_reducers()
        return [p for p in self._parameters() if p.requires_grad and p not in later]

    def _layout(self, parameters: list[torch.nn.Parameter]) -> None:
        """Put the trainable parameters into buckets, anew when they are others than last time."""
        if not self._current.is_of(parameters):
            self._lay_out_anew(parameters)
        for number, bucket in enumerate(self._buckets):
            bucket.name = f"edt.{self.place}.bucket.{number}"

    def _lay_out_anew(self, parameters: list[torch.nn.Parameter]) -> None:
        self._hook_all()
        for parameter, (bucket, index) in self._bucket_of.items():
            if parameter.grad is bucket.views[index]:  # one frozen now must not be stepped on an old gradient
                parameter.grad = None
        previous = self._current
        if self._spare.is_of(parameters):
            self._current = self._spare
        else:
            _check_types(parameters)
            groups = cut(parameters, self._bucket_bytes)
            self._current = Layout(parameters, [self._new_bucket(group) for group in groups])
        self._spare = previous if not parameters else Layout([], [])

    def _of_later_reducers(self) -> set[torch.nn.Parameter]:
        later = itertools.takewhile(lambda each: each is not self, reversed(_bucket_reducers()))
        return {parameter for each in later for parameter in each._parameters()}

    def _hook_all(self) -> None:
        for parameter in self._parameters():
            if parameter.requires_grad and parameter not in self._hooks:
                self._hooks[parameter] = parameter.register_post_accumulate_grad_hook(self._hook())  # type: ignore[no-untyped-call]

    def _hook(self) -> Callable[[torch.Tensor], None]:
        """A hook that does not keep this reducer alive."""
        reference = weakref.ref(self)

        def accumulated(parameter: torch.Tensor) -> None:
            reducer = reference()
            if reducer is not None:
                reducer._accumulated(parameter)  # type: ignore[arg-type]

        return accumulated
