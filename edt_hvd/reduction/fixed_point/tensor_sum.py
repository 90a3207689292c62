"""The sum of one tensor over micro-batches and workers, in fixed point.

The sum proper is an integer tensor, on the grid that `grid.place` chose; its owner reduces it over the
workers, usually together with others'. Addends beyond the grid's limit are written as digits of base
``2**LEVEL_BITS`` into further integer tensors, and inf and nan into a float tensor; both are made when the
first such addend comes, and reduced only when some worker has one. Every part of it is the same in whatever
order and grouping the addends come.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import torch

from edt_hvd.reduction.fixed_point import arithmetic as fixed_point
from edt_hvd.reduction.fixed_point.grid import Grid, exponent_of

NOTHING = -(2**15)
"""Stands for the exponent of addends that are all zero."""

PIECE = 2**15
"""Elements that are taken at a time where temporaries are needed; these fit into a CPU's cache."""

DEVICE_PIECE = 2**24
"""The same on a GPU, where each piece costs the start of several kernels."""


SLOTS = 1024
"""Addends whose sizes a device puts into one tensor, at least."""


class _Sizes:
    """The sizes of addends, which a device finds out, and its host reads all at once."""

    def __init__(self, device: torch.device, slots: int) -> None:
        self.capacity = slots
        self._found = torch.zeros(slots, dtype=torch.float64, device=device)
        self._sent: torch.Tensor | None = None
        self._arrival: torch.cuda.Event | None = None
        self._read: list[float] | None = None
        self.used = 0

    def slots(self, first: int, count: int) -> torch.Tensor:
        """Where the device puts the sizes of these addends."""
        return self._found.narrow(0, first, count)

    def send(self) -> None:
        """Begin to copy the sizes to the host, without waiting; no further slot may be used."""
        if self._sent is None:
            self._sent = self._found.to("cpu", non_blocking=True)
            if self._found.is_cuda:
                self._arrival = torch.cuda.Event()  # type: ignore[no-untyped-call]
                self._arrival.record(torch.cuda.current_stream(self._found.device))

    def read(self) -> list[float]:
        """The sizes. Waits for the work that was put on the device before `send`, and for no later work."""
        if self._read is None:
            self.send()
            if self._arrival is not None:
                self._arrival.synchronize()
            assert self._sent is not None
            self._read = self._sent.tolist()
        return self._read


_open: dict[tuple[torch.device, int], _Sizes] = {}
"""Those of each device and stream that have free slots."""


def _free_slots(device: torch.device, count: int) -> tuple[_Sizes, int]:
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" else 0
    sizes = _open.get((device, stream))
    if sizes is None or sizes.used + count > sizes.capacity:
        sizes = _open[device, stream] = _Sizes(device, max(SLOTS, count))
    sizes.used += count
    return sizes, sizes.used - count


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
        self._unread: list[tuple[torch.Tensor, float, _Sizes, int]] = []

    def add(self, values: torch.Tensor, weight: float, into: torch.Tensor | None = None) -> None:
        """Add ``weight * values``; a 1-D contiguous float tensor of the length of `total`.

        Args:
            values: on the device of `total`.
            weight: positive.
            into: what is inside the limit is added to this tensor like `total`, for the owner to add to it.

        On a GPU, see `add_together`.
        """
        total = self.total if into is None else into
        if is_asynchronous(values):
            add_together([Addend(self, 0, values, weight)], total)
            return
        self.addends += 1
        factor, limit = math.ldexp(weight, self.grid.scale), 2.0**self.grid.limit
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

    @property
    def is_plain(self) -> bool:
        """Whether `total` is all of the sum."""
        return not self._levels and self.special is None

    def read(self, out: torch.Tensor, divisor: float | None = None) -> None:
        """Write the sum into `out`, rounded once from float64; inf and nan where the addends had any.

        With a divisor, the sum in float64 is divided by it. This ends the sum: what lay outside the limit is
        dropped.

        Args:
            out: may be in the memory of `total`, beginning with it or before it, if its elements are no
                larger. `total` is used up then.
        """
        scale = math.ldexp(1.0, -self.grid.scale)
        is_plain = self.is_plain and divisor is None
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
        if self.is_plain and divisor is None:
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


class Addend(NamedTuple):
    """What is to be added to a sum, as for `FixedPointSum.add`.

    Attributes:
        sum: the sum.
        start: where its integers begin.
        values, weight: the addend.
    """

    sum: FixedPointSum
    start: int
    values: torch.Tensor
    weight: float


def add_together(addends: Sequence[Addend], total: torch.Tensor) -> None:
    """Add to several sums on a GPU with one kernel; one addend a sum.

    Asking how large the values are would wait for it. `send_sizes` asks for many at once, and `read_sizes`
    waits for the answer, which has to come before anything but the kernels looks at the sums, or the values
    change. They are kept until then.

    Args:
        addends: of one type.
        total: what has the integers of all the sums.
    """
    from edt_hvd.reduction.fixed_point import cuda as fixed_point_cuda

    sizes, first = _free_slots(total.device, len(addends))
    fixed_point_cuda.accumulate_parts(
        [each.values for each in addends],
        [math.ldexp(each.weight, each.sum.grid.scale) for each in addends],
        total,
        [each.start for each in addends],
        [2.0**each.sum.grid.limit for each in addends],
        sizes.slots(first, len(addends)),
    )
    for slot, each in enumerate(addends, first):
        each.sum.addends += 1
        each.sum._unread.append((each.values, each.weight, sizes, slot))


def read_together(sums: Sequence[FixedPointSum], total: torch.Tensor, out: torch.Tensor) -> None:
    """Do what `FixedPointSum.read` does for all sums in `total`, one behind the other, on a GPU.

    One kernel does it if they are plain and not too large.
    """
    from edt_hvd.reduction.fixed_point import cuda as fixed_point_cuda

    starts = list(itertools.accumulate((each.total.numel() for each in sums), initial=0))
    if total.numel() > DEVICE_PIECE or not all(each.is_plain for each in sums):
        for each, start in zip(sums, starts, strict=False):
            each.read(out.narrow(0, start, each.total.numel()))
        return
    is_apart = _ahead_of(out, total, 0) == out.numel()
    found = out if is_apart else torch.empty_like(out)  # else it overwrites integers that are not read yet
    scales = [math.ldexp(1.0, -each.grid.scale) for each in sums]
    fixed_point_cuda.to_float_parts(total, starts[:-1], scales, found)
    if not is_apart:
        out.copy_(found)


def _ahead_of(out: torch.Tensor, total: torch.Tensor, start: int) -> int:
    """The element of `out` up to which it overwrites nothing of `total` from element `start` on."""
    distance = total.data_ptr() - out.data_ptr()
    if distance < 0 or distance >= total.nbytes + out.nbytes:  # elsewhere
        return out.numel()
    return min((distance + start * total.element_size()) // out.element_size(), out.numel())


def _to_float(total: torch.Tensor, scale: float, out: torch.Tensor) -> None:
    if out.is_cuda:
        from edt_hvd.reduction.fixed_point import cuda as fixed_point_cuda

        fixed_point_cuda.to_float(total, scale, out)
    else:
        fixed_point.to_float(total, scale, out)


def is_asynchronous(values: torch.Tensor) -> bool:
    """Whether the device of the values works on by itself while they are added."""
    return values.is_cuda


def send_sizes() -> None:
    """Ask each device for the sizes of all addends since the last time, without waiting."""
    while _open:
        _open.popitem()[1].send()


def read_sizes(sums: Iterable[FixedPointSum]) -> None:
    """Take in how large the addends since the last time were."""
    unread = [(each, each._unread) for each in sums if each._unread]
    if unread:
        send_sizes()
    for each, items in unread:
        each._unread = []
        for values, weight, sizes, slot in items:
            each._note(values, weight, sizes.read()[slot])
