"""Buckets of gradients: reducing a few large tensors costs less than many small ones, and can begin early."""

import itertools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import horovod.torch as hvd
import torch

from edt_hvd.reduction.bits import as_real

BUCKET_BYTES = 8 * 2**20
"""Size up to which gradients are put together into one all-reduce."""


class Bucket(ABC):
    """Neighbouring parameters whose gradients are reduced together; complex ones as pairs of real numbers.

    Args:
        parameters: of one dtype and device.

    Attributes:
        name: of its all-reduces.
        flat: the gradients after the reduction, one behind the other, real; `views` are its parts by
            parameter, in the parameter's type.
        launched: the all-reduce of this step is under way.
        touched: `add` has been called in this step.
        late: sums of gradients that came after the launch, to be reduced on their own; None when none came.
        waiting_for: the parameters, by index, without a gradient yet in the last micro-batch here.
    """

    def __init__(self, parameters: Sequence[torch.nn.Parameter]) -> None:
        first = as_real(parameters[0].detach())
        self.name = ""
        self.parameters = parameters
        self.sizes = [as_real(p.detach()).numel() for p in parameters]
        self.offsets = list(itertools.accumulate(self.sizes, initial=0))
        self.flat = self._memory(sum(self.sizes), first.dtype, first.device)
        self.parts: Sequence[torch.Tensor] = self.flat.split(self.sizes)  # type: ignore[no-untyped-call]
        self.views = [_shaped(part, p) for p, part in zip(parameters, self.parts, strict=True)]
        self.addends = [0] * len(parameters)
        self.waiting_for = set(range(len(parameters)))
        self.launched = self.touched = False
        self.late: torch.Tensor | None = None
        self.handles: list[Any] = []

    def _memory(self, size: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
        """What becomes `flat`."""
        return torch.zeros(size, dtype=dtype, device=device)

    def begin(self) -> None:
        """A new step begins."""
        self.addends = [0] * len(self.parameters)
        self.waiting_for = set(range(len(self.parameters)))
        self.launched = self.touched = False
        self.late = None

    def add(self, index: int, gradient: torch.Tensor, weight: float) -> None:
        """Add a weighted gradient to the sum for the parameter of that index in the bucket."""
        self._prepare()
        self.addends[index] += 1
        into = self.late_total().narrow(0, self.offsets[index], self.sizes[index]) if self.launched else None
        flat = gradient.detach()
        if flat.is_complex() or flat.is_neg():  # asked here, since it is for every gradient
            flat = as_real(flat.resolve_neg())
        self._add(index, flat.reshape(-1), weight, into)

    def late_total(self) -> torch.Tensor:
        """The sums in `late`; zeros when this worker had no need of it."""
        if self.late is None:
            self.late = torch.zeros_like(self.total)
        return self.late

    def launch(self) -> None:
        """Begin to sum over the workers what has been added."""
        self._prepare()
        self.launched = True
        self._reduce(self.total, self.name)

    def reduce_late(self) -> None:
        """Sum what came after the launch over the workers, and add it."""
        late = self.late_total()
        self._reduce(late, f"{self.name}.late")
        self.synchronize()
        self.total.add_(late)
        self.late = None

    def _reduce(self, flat: torch.Tensor, name: str) -> None:
        if hvd.size() > 1:
            self.handles.append(hvd.allreduce_async_(flat, name=name, op=hvd.Sum))

    def synchronize(self) -> None:
        """Wait for the all-reduces under way."""
        handles, self.handles = self.handles, []
        for handle in handles:
            hvd.synchronize(handle)

    def _prepare(self) -> None:
        if not self.touched:
            self.touched = True
            self.total.zero_()

    @property
    @abstractmethod
    def total(self) -> torch.Tensor:
        """The flat tensor that is summed over the workers."""

    @abstractmethod
    def _add(self, index: int, gradient: torch.Tensor, weight: float, into: torch.Tensor | None) -> None:
        """Add a flat gradient to its part of `total`, or to `into`."""


def _shaped(part: torch.Tensor, parameter: torch.nn.Parameter) -> torch.Tensor:
    """A flat part as a gradient of the parameter."""
    if parameter.is_complex():
        return torch.view_as_complex(part.view(*parameter.shape, 2))
    return part.view(parameter.shape)
