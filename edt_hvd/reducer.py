"""Summing gradients over the workers: what every reduction has in common, and the one by ring-allreduce.

A step's loop tells the reducers of all distributed optimizers where it is; a reducer sees to it that
after the loop each parameter's ``.grad`` is the gradient of the whole effective batch's mean loss.
Together with the gradients travels a small header: whether any worker wants to stop (so that all stop
after the same step, without a message of their own), the loss, and which parameters received a gradient.
"""

import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

import horovod.torch as hvd
import torch

from edt_hvd import world
from edt_hvd.errors import GradientError

BUCKET_BYTES = 8 * 2**20
"""Size up to which gradients are put together into one all-reduce."""

_STOP, _LOSS, _FLAGS = 0, 1, 2
"""Places in the header: stop wanted, weighted loss, then one flag a parameter."""


class Reducer(Protocol):
    """What the loop over a step's micro-batches tells a reduction."""

    def begin_step(self) -> None:
        """A new effective batch begins: gradients start from zero."""

    def before_backward(self, last: bool) -> None:
        """A backward pass is about to run; `last`: it belongs to this worker's last micro-batch."""

    def finish_step(self, loss: float | torch.Tensor) -> float:
        """All of this worker's micro-batches are done; reduce, and return the whole batch's mean loss."""

    def reset(self) -> None:
        """The world was formed anew; forget what was under way in the old one."""


_registered: "list[weakref.ref[Reducer]]" = []
_stop_agreed = False


def register(reducer: Reducer) -> None:
    """Let `reducer` follow the steps of every loader."""
    _registered.append(weakref.ref(reducer))


def active() -> tuple[Reducer, ...]:
    """The reducers of the distributed optimizers alive, in the order of their making."""
    living = [(reference, reducer) for reference in _registered if (reducer := reference()) is not None]
    _registered[:] = [reference for reference, _ in living]
    return tuple(reducer for _, reducer in living)


def stop_agreed() -> bool:
    """Whether a header has told all workers, at the same step, that the world is to be formed anew."""
    return _stop_agreed


def reset() -> None:
    """Forget the old world."""
    global _stop_agreed
    _stop_agreed = False
    for reducer in active():
        reducer.reset()


class _Bucket:
    """Neighbouring parameters whose gradients are views of one flat buffer."""

    def __init__(self, name: str, parameters: Sequence[torch.nn.Parameter]) -> None:
        first = parameters[0]
        self.name = name
        self.flat = torch.zeros(sum(p.numel() for p in parameters), dtype=first.dtype, device=first.device)
        parts = self.flat.split([p.numel() for p in parameters])  # type: ignore[no-untyped-call]
        self.views = [(p, part.view(p.shape)) for p, part in zip(parameters, parts, strict=True)]
        self.waiting_for = len(parameters)
        self.launched = False

    def clear(self) -> None:
        self.waiting_for = len(self.views)
        self.launched = False
        self.flat.zero_()
        for parameter, view in self.views:
            if parameter.grad is not view:
                parameter.grad = view


def _cut(parameters: Iterable[torch.nn.Parameter], bucket_bytes: int) -> list[list[torch.nn.Parameter]]:
    """Group parameters, last first as backward reaches them, by dtype and device up to `bucket_bytes`."""
    groups: list[list[torch.nn.Parameter]] = []
    open_groups: dict[tuple[torch.dtype, torch.device], tuple[list[torch.nn.Parameter], int]] = {}
    for parameter in reversed(list(parameters)):
        kind = (parameter.dtype, parameter.device)
        nbytes = parameter.numel() * parameter.element_size()
        group, filled = open_groups.get(kind, ([], bucket_bytes))
        if filled + nbytes > bucket_bytes:
            group, filled = [], 0
            groups.append(group)
        group.append(parameter)
        open_groups[kind] = (group, filled + nbytes)
    return groups


class RingReducer:
    """Sums gradients by Horovod's ring-allreduce, bucket by bucket, overlapped with the last backward pass.

    The overlap begins once a step has shown that the script runs one backward pass a micro-batch; before
    that, and for scripts that run several, everything is reduced when the loop over the step ends.
    """

    def __init__(
        self,
        name: str,
        parameters: Callable[[], list[torch.nn.Parameter]],
        bucket_bytes: int = BUCKET_BYTES,
    ) -> None:
        self._name = name
        self._parameters = parameters
        self._bucket_bytes = bucket_bytes
        self._buckets: list[_Bucket] = []
        self._place: dict[torch.nn.Parameter, tuple[int, _Bucket, torch.Tensor]] = {}
        self._hooks: dict[torch.nn.Parameter, Any] = {}
        self._handles: list[Any] = []
        self._touched: set[torch.nn.Parameter] = set()
        self._in_step = False
        self._reduced = False
        self._unreduced = False
        self._launching = False
        self._backwards = 0
        self._last_backwards = 0
        self._one_backward = False
        self._hook_all()

    def reset(self) -> None:
        """As in `Reducer`."""
        self._handles.clear()
        self._in_step = self._reduced = self._unreduced = self._launching = False

    # The loop over a step.

    def begin_step(self) -> None:
        """As in `Reducer`."""
        self._layout()
        for bucket in self._buckets:
            bucket.clear()
        self._touched.clear()
        self._backwards = self._last_backwards = 0
        self._in_step, self._reduced, self._unreduced = True, False, False

    def before_backward(self, last: bool) -> None:
        """As in `Reducer`.

        Raises:
            GradientError: gradients of this step are being reduced already.
        """
        if any(bucket.launched for bucket in self._buckets):
            raise GradientError(
                "a second backward pass in the last micro-batch of a step, after steps with only one: its "
                "gradients would miss the reduction that is already under way. Call step.backward() once a "
                "micro-batch, on the sum of the losses, or always as often"
            )
        self._backwards += 1
        self._last_backwards += last
        self._launching = last and self._one_backward and hvd.size() > 1

    def finish_step(self, loss: float | torch.Tensor) -> float:
        """As in `Reducer`.

        Raises:
            GradientError: gradients have come from ``loss.backward()``, unweighted.
        """
        if self._touched and not self._backwards:
            raise GradientError(
                "loss.backward() inside the loop over a step's micro-batches: its gradients do not carry the "
                "micro-batch's weight; call step.backward(loss) instead"
            )
        self._launching = False
        total = self._reduce(float(loss), hvd.Sum)
        if self._last_backwards:
            self._one_backward = self._last_backwards == 1
        self._in_step, self._reduced = False, True
        return total

    # The optimizer.

    def before_optimizer_step(self) -> None:
        """Average what a loop without a loader's steps has left in ``.grad``, as Horovod's optimizer does.

        Raises:
            GradientError: called inside the loop over a step's micro-batches.
        """
        if self._in_step:
            raise GradientError(
                "optimizer.step() inside the loop over a step's micro-batches: the gradients are those of a "
                "part of the batch; call it once, after that loop"
            )
        if self._unreduced and not self._reduced:
            self._gather_gradients()
            self._reduce(0.0, hvd.Average)
        self._reduced = self._unreduced = False

    def _gather_gradients(self) -> None:
        found = {p: p.grad for p in self._parameters() if p.grad is not None}
        self._layout()
        self._touched = set(found)
        for bucket in self._buckets:
            bucket.launched = False
            for parameter, view in bucket.views:
                gradient = found.get(parameter)
                if gradient is None:
                    view.zero_()
                elif gradient is not view:
                    view.copy_(gradient)
                parameter.grad = view

    # Reducing.

    def _reduce(self, loss: float, op: Any) -> float:
        """Reduce every bucket not yet under way and the header; returns the reduced loss."""
        alone = hvd.size() == 1
        header = torch.zeros(_FLAGS + len(self._place))
        header[_STOP] = world.current().stop_wanted
        header[_LOSS] = loss
        for parameter in self._touched:
            header[_FLAGS + self._place[parameter][0]] = 1
        if not alone:
            for bucket in self._buckets:
                if not bucket.launched:
                    self._launch(bucket, op)
            self._handles.append(hvd.allreduce_async_(header, name=f"edt.{self._name}.header", op=hvd.Sum))
            handles, self._handles = self._handles, []
            for handle in handles:
                hvd.synchronize(handle)
        self._read(header)
        return float(header[_LOSS])

    def _read(self, header: torch.Tensor) -> None:
        global _stop_agreed
        values = header.tolist()
        _stop_agreed = _stop_agreed or values[_STOP] > 0
        for parameter, (index, _, _) in self._place.items():
            if values[_FLAGS + index] == 0:
                parameter.grad = None

    def _launch(self, bucket: _Bucket, op: Any) -> None:
        bucket.launched = True
        self._handles.append(hvd.allreduce_async_(bucket.flat, name=f"edt.{self._name}.{bucket.name}", op=op))

    def _accumulated(self, parameter: torch.nn.Parameter) -> None:
        """Autograd has added to the gradient of `parameter`."""
        if not self._in_step:
            self._unreduced = True
            return
        if parameter not in self._place:
            return
        gradient = parameter.grad
        _, bucket, view = self._place[parameter]
        if gradient is not None and gradient is not view:
            if gradient.is_sparse:
                raise GradientError("sparse gradients cannot be reduced; build the layer with sparse=False")
            view.add_(gradient)
            parameter.grad = view
        self._touched.add(parameter)
        if self._launching:
            bucket.waiting_for -= 1
            if bucket.waiting_for == 0:
                self._launch(bucket, hvd.Sum)

    # The layout.

    def _layout(self) -> None:
        """Put the trainable parameters into buckets, anew when they are others than last time."""
        parameters = [p for p in self._parameters() if p.requires_grad]
        kinds_match = all(p.dtype == v.dtype and p.device == v.device for p, (_, _, v) in self._place.items())
        if kinds_match and len(parameters) == len(self._place) and all(p in self._place for p in parameters):
            return
        self._hook_all()
        for parameter, (_, _, view) in self._place.items():
            if parameter.grad is view:  # one that is frozen now must not be stepped on an old gradient
                parameter.grad = None
        groups = _cut(parameters, self._bucket_bytes)
        self._buckets = [_Bucket(f"bucket.{number}", group) for number, group in enumerate(groups)]
        index = {parameter: number for number, parameter in enumerate(parameters)}
        self._place = {p: (index[p], bucket, view) for bucket in self._buckets for p, view in bucket.views}

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
