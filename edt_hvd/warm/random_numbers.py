"""The global random number generators of random, NumPy and torch: what imports have done to them.

Every process has its own random numbers unless something seeds the generators, so a forked worker gets new
seeds. A library that seeds a generator when it is imported has to do so in the program, after whatever the
program does before: nothing may be forked then.
"""

import random

import numpy as np
import torch


class Watch:
    """Sees which generators are seeded from now on; draws numbers itself."""

    def __init__(self) -> None:
        random.random()  # fills its words, which stay the same until they are used up: for about 300 numbers
        np.random.random()
        self._before = _fingerprints()

    @property
    def seeded(self) -> list[str]:
        """The generators that have been seeded since, or have given hundreds of numbers."""
        return [name for name, found in _fingerprints().items() if found != self._before[name]]


def _fingerprints() -> dict[str, object]:
    words = np.random.get_state(legacy=False)["state"]
    return {
        "random": random.getstate()[1][:-1],
        "numpy": bytes(words["key"]) if "key" in words else None,  # else it has been replaced by another one
        "torch": torch.initial_seed(),
    }


def reseed() -> None:
    """Have the system seed the generators anew, as those of a fresh process."""
    random.seed()
    np.random.seed()
    torch.default_generator.seed()  # on the CPU alone: those of devices have a fixed seed
