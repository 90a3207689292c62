"""Random numbers that do not depend on which worker draws them, nor on what was drawn before.

The global generators of torch, NumPy and `random` are seeded anew for everything that random numbers are
drawn for: a sample (augmentation), the collation of a micro-batch, the passes through the model (dropout),
and what a script does between two steps.
"""

import random
from enum import IntEnum

import numpy as np
import torch

from edt_hvd.data.batching import mixed_seed


class Purpose(IntEnum):
    """What random numbers are drawn for; with seed, epoch and an index it makes up the seed."""

    SAMPLE = 1
    COLLATION = 2
    MICRO_BATCH = 3
    BEFORE_STEP = 4
    AFTER_STEP = 5
    AFTER_EPOCH = 6
    ORDER = 7


def seed_for(purpose: Purpose, seed: int, epoch: int, *index: int) -> None:
    """Seed the global generators of torch (CPU and CUDA), NumPy and `random` for one purpose.

    Args:
        purpose: what the numbers are for.
        seed: the loader's.
        epoch: number of the epoch.
        *index: of the sample in the epoch's order, of the step, or of the step and the micro-batch.
    """
    mixed = mixed_seed(purpose, seed, epoch, *index)
    torch.default_generator.manual_seed(mixed)  # torch.manual_seed, less 100 us of looking for devices
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed_all(mixed)
    np.random.seed(mixed % 2**32)
    random.seed(mixed)
