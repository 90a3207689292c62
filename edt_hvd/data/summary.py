"""What becomes of an epoch, in a few numbers."""

import math
from dataclasses import dataclass
from typing import NamedTuple


class EpochSummary(NamedTuple):
    """What has become of an epoch, or of the present one so far.

    Attributes:
        epoch: its number, from 0.
        steps: finished optimizer steps.
        samples: samples in them, over all workers.
        loss: mean loss of these samples, the same on every worker; nan where there are none. Of a step that
            was passed over several times, the last pass counts.
    """

    epoch: int
    steps: int
    samples: int
    loss: float


@dataclass
class Tally:
    """Of the finished steps of an epoch: their samples, and the sum of these samples' losses."""

    samples: int = 0
    loss: float = 0.0

    def summary(self, epoch: int, steps: int) -> EpochSummary:
        """Of an epoch of that number, after so many steps."""
        return EpochSummary(
            epoch, steps, self.samples, self.loss / self.samples if self.samples else math.nan
        )
