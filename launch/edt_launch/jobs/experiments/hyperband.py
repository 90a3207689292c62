"""Hyperband's plan: brackets of rungs, as in Li et al., JMLR 18 (2018), algorithm 1.

A bracket starts many configurations with a small budget, and gives the best of them `eta` times as much,
again and again, until few are left that get all. The first bracket is the boldest, the last
one is random search.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

EPSILON = 1e-9
"""What powers of a number that is no integer may be off."""


@dataclass(frozen=True)
class Slot:
    """A place in the plan for one trial.

    Attributes:
        budget: iterations that it may use.
        place: 0 for the best of the rung before.
        before: numbers of the trials of the rung before; empty in a bracket's first rung.
    """

    budget: int
    place: int
    before: range


def slots(eta: float, resource: int, most: int) -> list[Slot]:
    """The plan, cut off after `most` trials; a trial's number is its slot's index.

    Args:
        eta: of how many configurations one goes on; more than 1.
        resource: the greatest budget; at least 1.
        most: trials at most.
    """
    return list(islice(_slots(eta, resource), most))


def _slots(eta: float, resource: int) -> Iterator[Slot]:
    boldest = math.floor(math.log(resource, eta) + EPSILON)
    number = 0
    for bracket in range(boldest, -1, -1):
        first = math.ceil((boldest + 1) / (bracket + 1) * eta**bracket - EPSILON)
        before = range(0)
        for rung in range(bracket + 1):
            count = math.floor(first * eta**-rung + EPSILON)
            budget = max(1, math.floor(resource * eta ** (rung - bracket) + EPSILON))
            for place in range(count):
                yield Slot(budget, place, before)
            before = range(number, number + count)
            number += count
