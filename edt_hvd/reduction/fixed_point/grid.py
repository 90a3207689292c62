"""Where the fixed point lies: pure decisions, from numbers that do not depend on the number of workers.

A value v is kept as the integer ``round(v * 2**scale)``. Of an integer's bits, some are set aside for the
number of addends, so that no sum of them can leave the type; what remains is the *limit*. The largest
addend of the last step is placed `HEADROOM` bits below it::

    int64    s ccccccccccc | hhh xxxxxxxx...xxxxxxxx      c  room for the addends to add up
             ^ sign        ^ limit                       h  headroom: how much larger addends may be this time
                                                         x  bits of the last step's largest addend

An addend beyond the limit is not lost and does not stop the step: it is kept apart, in further integers of
a coarser unit (`levels`), and the next step's scale takes it into account.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

IntegerBits = Literal[32, 64]

HEADROOM: Final[dict[IntegerBits, int]] = {64: 3, 32: 2}
"""Bits between the last step's largest addend and the limit."""

MAX_LIMIT: Final = 51
"""log2 of the largest limit: up to it, rounding is one addition in float64 (see `fixed_point.LIMIT`)."""

PACE: Final[dict[IntegerBits, tuple[int, int]]] = {64: (12, 4), 32: (2, 1)}
"""By how much the expected exponent may rise and fall from step to step.

Rising slowly keeps a single spike from coarsening the steps after it, at the price of further integers while
gradients do grow; falling slowly keeps parameters whose gradients alternate inside the limit.
"""

FIRST_PASSES: Final = 8
"""Addends a micro-batch that a parameter is expected to have at most, before a step has shown it."""

LEVEL_BITS: Final = 40
"""Bits of a float64 that each further integer takes; 2**22 of them can be added."""

FIRST_SCALE: Final[dict[IntegerBits, int]] = {64: 4, 32: 29}
"""Without history, addends below ``2**-FIRST_SCALE`` are inside the limit.

Most gradients are, with 64 bits, so that a first step is like the others. 32 would round them off too much:
they go into further integers.
"""

_MAX_SCALE: Final = 900  # 2**900 times any gradient but the most absurd is a float64


@dataclass(frozen=True, slots=True)
class Grid:
    """How the addends of one tensor are written as integers in one step.

    Attributes:
        scale: integers count in units of ``2**-scale``.
        limit: an addend is inside when its size in units is below ``2**limit``.
    """

    scale: int
    limit: int

    def levels(self, exponent: int) -> int:
        """How many further integers addends below ``2**exponent`` units need; 0 when all are inside."""
        if exponent <= self.limit:
            return 0
        return -(-(exponent - self.level_unit(1)) // LEVEL_BITS)

    def level_unit(self, level: int) -> int:
        """log2 of the units that the integers of a level, from 1, count in.

        The lowest level takes the last bit of a float64 (53 significant ones) just beyond the limit.
        """
        return self.limit - 52 + LEVEL_BITS * (level - 1)


def limit_for(bits: IntegerBits, addends: int) -> int:
    """log2 of the limit below which that many addends can be summed in an integer of `bits` bits."""
    return min(MAX_LIMIT, bits - 2 - (addends - 1).bit_length())


def place(exponent: int | None, bits: IntegerBits, addends: int) -> Grid:
    """The grid for a tensor whose addends have lately been below ``2**exponent``; None: unknown."""
    limit = limit_for(bits, addends)
    scale = limit + FIRST_SCALE[bits] if exponent is None else limit - HEADROOM[bits] - exponent
    return Grid(max(-_MAX_SCALE, min(scale, _MAX_SCALE)), limit)


def remember(before: int | None, seen: int | None, bits: IntegerBits) -> int | None:
    """The exponent to place the next step's grid by: that of this step's addends, approached by `PACE`."""
    if seen is None or before is None:
        return before if seen is None else seen
    up, down = PACE[bits]
    return max(before - down, min(seen, before + up))


def fits(grid: Grid, bits: IntegerBits, addends: int, exponent: int) -> bool:
    """Whether that many integers below both ``2**exponent`` and the limit have a sum that fits."""
    largest = 1 << max(0, min(exponent, grid.limit))
    return addends * largest < 1 << (bits - 1)


def exponent_of(value: float) -> int | None:
    """The smallest e with ``|value| < 2**e``; None for 0.

    Raises:
        ValueError: not a finite number.
    """
    if not math.isfinite(value):
        raise ValueError(f"{value} has no exponent; give a finite number")
    return math.frexp(value)[1] if value else None


def passes(addends: Sequence[int], micro_batches: int) -> int:
    """Addends a micro-batch of the parameter that had the most of them in a step."""
    return max(1, -(-max(addends, default=0) // micro_batches))
