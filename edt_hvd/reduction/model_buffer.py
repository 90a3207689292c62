"""One buffer of a model in a step: as it was when the step began, and the sum of its changes since."""

import math
import weakref
from collections.abc import Iterable

import torch
from torch.nn.modules.batchnorm import _NormBase

from edt_hvd.reduction.bits import FLOATS, as_real, bits_of
from edt_hvd.reduction.fixed_point import grid
from edt_hvd.reduction.fixed_point.tensor_sum import FixedPointSum
from edt_hvd.reduction.grad_modes import overwrite, version_of

_HEADROOM = 6
"""Bits by which a change may be larger than the buffer before it needs further integers."""

_INTEGER_EXPONENT = 16
"""Changes of integers below two to this power need no further integers; larger ones are as exact."""


class ModelBuffer:
    """One buffer of a module, as it was when the step began, and the sum of its changes."""

    def __init__(self, owner: torch.nn.Module, name: str, start: torch.Tensor) -> None:
        self._owner = weakref.ref(owner)
        self.name = name
        self.tensor = start
        self.start = as_real(start.detach()).clone()
        self.version = version_of(start)
        self.changes: FixedPointSum | None = None

    @property
    def owner(self) -> torch.nn.Module | None:
        """The module; None when it is gone."""
        return self._owner()

    @property
    def current(self) -> torch.Tensor | None:
        """The buffer as the module has it now."""
        return self.owner._buffers.get(self.name) if self.owner is not None else None

    @property
    def surely_changed(self) -> bool:
        """Whether it may be taken as changed since `start` was taken or restored, without comparing bits."""
        owner = self.owner
        if owner is None or self.current is not self.tensor or version_of(self.tensor) != self.version:
            return True
        return self.is_statistic and owner.training

    @property
    def is_statistic(self) -> bool:
        """Whether it is batch norm's, which writes without a count."""
        return isinstance(self.owner, _NormBase) and self.name in ("running_mean", "running_var")

    def differs(self) -> torch.Tensor:
        """Whether its bits differ from `start`: one boolean, on its device."""
        return (bits_of(self.tensor) != bits_of(self.start)).any()

    def restore(self) -> None:
        """Go back to the start."""
        as_it_was = torch.view_as_complex(self.start) if self.tensor.is_complex() else self.start
        overwrite(self.tensor, as_it_was)
        if self.owner is not None:
            self.owner._buffers[self.name] = self.tensor
        self.version = version_of(self.tensor)

    def begin(self, exponent: int | None, addends: int) -> None:
        """Begin the sum.

        Args:
            exponent: the power of two below which the start's sizes are; None if they are all 0.
            addends: changes in it, at most.
        """
        total = torch.zeros(self.start.numel(), dtype=torch.int64, device=self.start.device)
        self.changes = FixedPointSum(total)
        if not self.start.is_floating_point():
            exponent = _INTEGER_EXPONENT
        elif exponent is not None:
            exponent += _HEADROOM
        expected = None if exponent is None else exponent - grid.HEADROOM[64]
        self.changes.begin(grid.place(expected, 64, addends))

    def _base(self) -> torch.Tensor:
        """What changes are counted from: the start, or 0 where that is inf or nan."""
        if not self.start.is_floating_point():
            return self.start.long()
        return self.start.double().nan_to_num(0.0, 0.0, 0.0)

    def largest(self) -> float:
        """The size of the largest finite element of the start."""
        return float(self._base().abs().max()) if self.start.numel() else 0.0

    def add_change(self, weight: float) -> None:
        """Add the change since the start, weighted; not of a cache that was dropped or got another shape.

        The sum has begun.
        """
        current = self.current
        if current is None:
            return
        now = as_real(current.detach())
        if now.shape != self.start.shape:
            return
        now = now.double() if now.is_floating_point() else now.long()
        change = (now - self._base()).double().reshape(-1)
        assert self.changes is not None
        self.changes.add(change, weight)

    def finish(self, by_all: bool) -> None:
        """Take the summed changes over; `by_all`: every micro-batch made one."""
        assert self.changes is not None
        change = torch.empty(self.start.numel(), dtype=torch.float64, device=self.start.device)
        self.changes.read(change)
        if not self.start.is_floating_point():
            change = change.round().long()
        value = self._base() + change.view(self.start.shape)
        if not by_all:
            value = torch.where(self.start.isfinite(), value, self.start.to(value.dtype))
        self.start.copy_(value)
        self.changes = None
        self.restore()


def changed_ones(buffers: Iterable[ModelBuffer]) -> list[ModelBuffer]:
    """Which buffers have been written to, or replaced, since their start was taken or restored."""
    sure: list[ModelBuffer] = []
    unsure: list[ModelBuffer] = []
    for buffer in buffers:
        (sure if buffer.surely_changed else unsure).append(buffer)
    return sure + differing(unsure)


def differing(buffers: Iterable[ModelBuffer]) -> list[ModelBuffer]:
    """Which of them have other bits than at their start, with one question to each device."""
    by_device = dict[torch.device, list[ModelBuffer]]()
    for buffer in buffers:
        by_device.setdefault(buffer.start.device, []).append(buffer)
    return [
        buffer
        for on_device in by_device.values()
        for buffer, differs in zip(
            on_device, torch.stack([buffer.differs() for buffer in on_device]).tolist(), strict=True
        )
        if differs
    ]


def begin_sums(buffers: Iterable[ModelBuffer], addends: int) -> None:
    """Begin the sums that have not begun, with one question to each device about the sizes of the starts."""
    new = [buffer for buffer in buffers if buffer.changes is None]
    alike = dict[tuple[torch.device, torch.dtype], list[ModelBuffer]]()
    for buffer in new:
        if buffer.start.dtype in FLOATS and buffer.start.numel():
            alike.setdefault((buffer.start.device, buffer.start.dtype), []).append(buffer)
    by_device = dict[torch.device, tuple[list[ModelBuffer], list[torch.Tensor]]]()
    for (device, _), found in alike.items():
        asked, norms = by_device.setdefault(device, ([], []))
        asked += found
        norms += [norm.double() for norm in torch._foreach_norm([each.start for each in found], math.inf)]
    sizes = dict[ModelBuffer, float]()
    for asked, norms in by_device.values():
        sizes |= zip(asked, torch.stack(norms).tolist(), strict=True)
    for buffer in new:
        size = sizes.get(buffer, 0.0)
        if not math.isfinite(size) or (buffer not in sizes and buffer.start.is_floating_point()):
            size = buffer.largest()
        buffer.begin(grid.exponent_of(size), addends)
