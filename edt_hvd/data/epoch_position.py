"""How far a loader is in its epochs, and the summary of an epoch."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple


class EpochSummary(NamedTuple):
    """The summary of an epoch, or of the present one so far.

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


@dataclass(frozen=True)
class EpochPosition:
    """How far a loader is.

    Attributes:
        epoch: number of the current epoch, from 0.
        step: finished steps in it.
        steps_before: finished steps in earlier epochs.
        samples: in the finished steps of the current epoch.
        loss: sum of these samples' losses.
        last_epoch: summary of the previous epoch.
    """

    epoch: int = 0
    step: int = 0
    steps_before: int = 0
    samples: int = 0
    loss: float = 0.0
    last_epoch: EpochSummary | None = None

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "EpochPosition":
        """Return the position whose `state_dict` is among the items of `state`."""
        last = state["last_epoch"]
        found = {each.name: state[each.name] for each in fields(cls)}
        return cls(**found | {"last_epoch": None if last is None else EpochSummary(*last)})

    def state_dict(self) -> dict[str, Any]:
        """The attributes as plain values."""
        return vars(self) | {"last_epoch": None if self.last_epoch is None else tuple(self.last_epoch)}

    def after_step(self, samples: int, loss: float) -> "EpochPosition":
        """Return the position after a step with so many samples and that mean loss."""
        return replace(
            self, step=self.step + 1, samples=self.samples + samples, loss=self.loss + loss * samples
        )

    def next_epoch(self) -> "EpochPosition":
        """Return the beginning of the next epoch."""
        return EpochPosition(self.epoch + 1, 0, self.steps_before + self.step, last_epoch=self._so_far())

    @property
    def summary(self) -> EpochSummary:
        """Summary of the current epoch so far; before its first step, of the previous epoch."""
        return self.last_epoch if self.step == 0 and self.last_epoch is not None else self._so_far()

    def _so_far(self) -> EpochSummary:
        mean = self.loss / self.samples if self.samples else math.nan
        return EpochSummary(self.epoch, self.step, self.samples, mean)
