"""The sum of one tensor over micro-batches and workers, in fixed point.

The sum proper is an integer tensor, on the grid that `grid.place` chose; its owner reduces it over the
workers, usually together with others'. Addends beyond the grid's limit are written as digits of base
``2**LEVEL_BITS`` into further integer tensors, and inf and nan into a float tensor; both are made when the
first such addend comes, and reduced only when some worker has one. Every part of it is the same in whatever
order and grouping the addends come.
"""

import math
from collections.abc import Iterable, Iterator

import torch

from edt_hvd.reduction import fixed_point
from edt_hvd.reduction.grid import Grid, exponent_of

NOTHING = -(2**15)
"""Stands for the exponent of addends that are all zero."""

PIECE = 2**15
"""Elements that are taken at a time where temporaries are needed; these fit into a CPU's cache."""

DEVICE_PIECE = 2**24
"""The same on a GPU, where each piece costs the start of several kernels."""


class FixedPointSum:
    """A sum of float tensors of one shape, bitwise the same for every order and grouping of the addends.

    Args:
        total: int32 or int64, one-dimensional and contiguous; holds the sum.

    Attributes:
        addends: how many there were in this step, here.
        exponent: the sizes of their finite values are below ``2**exponent`` units; `NOTHING` if all are 0.
        special: inf and nan among the addends, else 0; None while all were finite.
    """

    def __init__(self, total: torch.Tensor) -> None:
        self.total = total
        self.begin(Grid(0, 0))

    def begin(self, grid: Grid) -> None:
        """Begin a new sum; the owner has set `total` to zero."""
        self.grid = grid
        self.addends = 0
        self.exponent = NOTHING
        self.special: torch.Tensor | None = None
        self._levels: dict[int, torch.Tensor] = {}
        self._unread: list[tuple[torch.Tensor, float, torch.Tensor]] = []

    def add(self, values: torch.Tensor, weight: float, into: torch.Tensor | None = None) -> None:
        """Add ``weight * values``; a 1-D contiguous float tensor of the length of `total`.

        Args:
            values: on the device of `total`.
            weight: positive.
            into: what is inside the limit is added to this tensor like `total`, for the owner to add to it.

        On a GPU, asking how large the values are would wait for it; `read_sizes` does so for many at once,
        which has to come before anything but the kernels looks at the sum, or `values` changes.
        """
        self.addends += 1
        factor = math.ldexp(weight, self.grid.scale)
        limit = 2.0**self.grid.limit
        total = self.total if into is None else into
        if values.is_cuda:
            from edt_hvd.reduction import fixed_point_cuda

            largest = torch.zeros(1, dtype=torch.float64, device=values.device)
            fixed_point_cuda.accumulate(values, factor, total, limit, largest)
            self._unread.append((values, weight, largest))
        else:
            self._note(values, weight, fixed_point.accumulate(values, factor, total, limit))

    def _note(self, values: torch.Tensor, weight: float, largest: float) -> None:
        """Note the size of an addend, and add the part of it that `total` could not hold."""
        factor = math.ldexp(weight, self.grid.scale)
        largest *= factor
        if not largest < 2.0**self.grid.limit:
            largest = max(
                self._add_outside(values[piece].double() * factor, piece) for piece in self._pieces()
            )
        exponent = exponent_of(largest)
        self.exponent = max(self.exponent, NOTHING if exponent is None else exponent)

    def _pieces(self) -> Iterator[slice]:
        """Parts of the tensor, from its beginning."""
        size = PIECE if self.total.is_cpu else DEVICE_PIECE
        return (slice(start, start + size) for start in range(0, self.total.numel(), size))

    def _add_outside(self, scaled: torch.Tensor, piece: slice) -> float:
        """Add what of a piece of an addend lies outside the limit; returns the largest finite size."""
        finite = scaled.isfinite()
        if not finite.all():
            self.specials()[piece] += torch.where(finite, 0.0, scaled).float()
        sizes = torch.where(finite, scaled, 0.0).abs()
        largest = float(sizes.max())
        rest = torch.where(sizes >= 2.0**self.grid.limit, scaled, 0.0)
        for level in range(self.grid.levels(exponent_of(largest) or 0), 0, -1):
            unit = 2.0 ** self.grid.level_unit(level)
            digit = (rest / unit).trunc()
            rest -= digit * unit
            self.level(level)[piece] += digit.long()
        return largest

    def level(self, number: int) -> torch.Tensor:
        """The integers of a level, from 1; zeros when this worker had no need of it."""
        if number not in self._levels:
            self._levels[number] = torch.zeros_like(self.total, dtype=torch.int64)
        return self._levels[number]

    def specials(self) -> torch.Tensor:
        """`special`, zeros when this worker has none."""
        if self.special is None:
            self.special = torch.zeros_like(self.total, dtype=torch.float32)
        return self.special

    def read(self, out: torch.Tensor, divisor: float | None = None) -> None:
        """Write the sum into `out`, rounded once from float64; inf and nan where the addends had any.

        With a divisor, the sum in float64 is divided by it. This ends the sum: what lay outside the limit is
        dropped.

        Args:
            out: may be in the memory of `total`, beginning with it or before it, if its elements are no
                larger. `total` is used up then.
        """
        scale = math.ldexp(1.0, -self.grid.scale)
        is_plain = not self._levels and self.special is None and divisor is None
        start, count = 0, self.total.numel()
        spare: torch.Tensor | None = None
        while start < count:
            free = _ahead_of(out, self.total, start)
            size = PIECE if self.total.is_cpu else DEVICE_PIECE
            if free > start:
                size = free - start if is_plain else min(size, free - start)
            piece = slice(start, min(start + size, count))
            if free > start:
                self._read_piece(piece, scale, divisor, out[piece])
            else:  # it overwrites integers of this piece
                spare = torch.empty_like(out[piece]) if spare is None else spare
                found = spare[: piece.stop - start]
                self._read_piece(piece, scale, divisor, found)
                out[piece] = found
            start = piece.stop
        self._levels, self.special = {}, None

    def _read_piece(self, piece: slice, scale: float, divisor: float | None, out: torch.Tensor) -> None:
        if not self._levels and self.special is None and divisor is None:
            _to_float(self.total[piece], scale, out)
            return
        value = torch.zeros_like(out, dtype=torch.float64)
        for level in sorted(self._levels, reverse=True):
            unit = math.ldexp(1.0, self.grid.level_unit(level) - self.grid.scale)
            value += self._levels[level][piece].double() * unit
        value += self.total[piece].double() * scale
        if divisor is not None:
            value /= divisor
        if self.special is not None:
            special = self.special[piece]
            value = torch.where(special == 0, value, special.double())
            value.masked_fill_(value.isnan(), math.nan)  # a nan's other bits depend on the order
        out.copy_(value if out.dtype == torch.float64 else value.float())


def _ahead_of(out: torch.Tensor, total: torch.Tensor, start: int) -> int:
    """The element of `out` up to which it overwrites nothing of `total` from element `start` on."""
    distance = total.data_ptr() - out.data_ptr()
    if distance < 0 or distance >= total.nbytes + out.nbytes:  # elsewhere
        return out.numel()
    return min((distance + start * total.element_size()) // out.element_size(), out.numel())


def _to_float(total: torch.Tensor, scale: float, out: torch.Tensor) -> None:
    if out.is_cuda:
        from edt_hvd.reduction import fixed_point_cuda

        fixed_point_cuda.to_float(total, scale, out)
    else:
        fixed_point.to_float(total, scale, out)


def read_sizes(sums: Iterable[FixedPointSum]) -> None:
    """Ask each GPU, once for all addends since the last time, how large they were."""
    unread: dict[torch.device, list[tuple[FixedPointSum, torch.Tensor, float, torch.Tensor]]] = {}
    for each in sums:
        items, each._unread = each._unread, []
        for values, weight, largest in items:
            unread.setdefault(values.device, []).append((each, values, weight, largest))
    for found in unread.values():
        sizes = torch.cat([largest for *_, largest in found]).tolist()
        for (each, values, weight, _), size in zip(found, sizes, strict=True):
            each._note(values, weight, size)
