"""Which sizes a run goes through, and where it changes them. No I/O."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

MAX_RESIZES = 3
"""Resizes in one run, at most."""

LEAST_STEPS = 3
"""Steps that a run needs to be resized: one to hold at, one for the announcement, one with the new size."""


@dataclass(frozen=True)
class Schedule:
    """The sizes of one run.

    Attributes:
        sizes: numbers of workers, one after the other.
        holds: for every size but the first, the step after which the workers wait until it is announced.
            It is in force from the step after the next on: the announcement travels with a step.
    """

    sizes: tuple[int, ...]
    holds: tuple[int, ...] = ()

    def __str__(self) -> str:
        workers = "worker" if self.sizes == (1,) else "workers"
        return f"{' → '.join(map(str, self.sizes))} {workers}"

    @property
    def is_fixed(self) -> bool:
        """Whether the size never changes."""
        return len(self.sizes) == 1

    def until(self, step: int) -> "Schedule":
        """The same for a run that ends after that step."""
        holds = tuple(hold for hold in self.holds if hold + 2 <= step)
        return Schedule(self.sizes[: len(holds) + 1], holds)


def resizing(seed: int, count: int, sizes: Sequence[int], steps: int) -> tuple[Schedule, ...]:
    """Random schedules, all different, each of which grows at least once.

    Args:
        seed: of the choice.
        count: how many; fewer where there are not as many.
        sizes: to choose from; of a single one, all numbers up to it.
        steps: of a run.
    """
    choice = sorted(set(sizes)) if len(set(sizes)) > 1 else list(range(1, max(sizes) + 1))
    if steps < LEAST_STEPS or len(choice) < 2:
        return ()
    resizes = min(MAX_RESIZES, (steps - 1) // 2)
    holds = tuple((number + 1) * (steps - 2) // resizes for number in range(resizes))
    walks = list(itertools.islice(_walks(random.Random(seed), choice, resizes + 1), 50 * count))
    return tuple(Schedule(walk, holds) for walk in dict.fromkeys(walks))[:count]


def _walks(generator: random.Random, choice: Sequence[int], length: int) -> Iterator[tuple[int, ...]]:
    while True:
        walk = [generator.choice(choice)]
        while len(walk) < length:
            walk.append(generator.choice([size for size in choice if size != walk[-1]]))
        if any(before < after for before, after in itertools.pairwise(walk)):
            yield tuple(walk)
