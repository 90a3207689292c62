"""The losses of this worker's micro-batches in a pass, and their weights."""

import math

import torch

from edt_hvd.errors import GradientError
from edt_hvd.reduction.header import Loss, Weighting


class PassLosses:
    """The weighted losses of a pass, one for each micro-batch, on the device that computed them."""

    def __init__(self) -> None:
        self._values: list[torch.Tensor] = []
        self._weights: list[tuple[float, Weighting | None]] = []

    def begin_micro_batch(self) -> None:
        """A micro-batch begins; its loss is 0 until there is a backward pass."""
        self._values.append(torch.zeros((), dtype=torch.float64, device="cpu"))
        self._weights.append((0.0, None))

    def note_weight(self, weight: float | None) -> None:
        """A backward pass of the micro-batch is about to begin.

        Args:
            weight: given by the script; None for the share of the batch's samples.

        Raises:
            GradientError: it differs from that of an earlier backward pass of the micro-batch.
        """
        here = (0.0, Weighting.SAMPLES) if weight is None else (weight, Weighting.GIVEN)
        before = self._weights[-1]
        if before[1] is not None and before != here:
            raise GradientError(
                f"step.backward() was called several times in a micro-batch, with {_named(before)} and "
                f"{_named(here)}; pass the same weight in each, and multiply a loss that counts otherwise"
            )
        self._weights[-1] = here

    def add(self, loss: torch.Tensor, weight: float) -> None:
        """Add a loss, of one element, to that of the micro-batch."""
        self._values[-1] = self._values[-1] + loss.detach().double() * weight

    def numbers(self) -> list[float]:
        """The weighted losses, with one question to their device."""
        if len({value.device for value in self._values}) != 1:  # without a backward pass they are on the CPU
            return [float(value) for value in self._values]
        found: list[float] = torch.stack(self._values).tolist()
        return found

    def with_weights(self) -> list[Loss]:
        """The losses as the workers exchange them."""
        return [Loss(loss, *weight) for loss, weight in zip(self.numbers(), self._weights, strict=True)]


def checked_weight(weight: float | torch.Tensor, is_reduced: bool) -> float:
    """The weight that a script has given to a backward pass.

    Args:
        weight: as given.
        is_reduced: whether a `DistributedOptimizer` takes part in the step.

    Raises:
        RuntimeError: none does.
        ValueError: the weight is negative or not finite.
    """
    found = float(weight)
    if not 0 <= found < math.inf:
        raise ValueError(
            f"step.backward(loss, weight={found}): give the number of items, 0 or more, that the loss is the "
            "mean over"
        )
    if not is_reduced:
        raise RuntimeError(
            f"step.backward(loss, weight={found}) without a DistributedOptimizer, which divides by the sum "
            "of the weights; pass the optimizer to edt_hvd.DistributedOptimizer"
        )
    return found


def _named(weight: tuple[float, Weighting | None]) -> str:
    return f"weight={weight[0]}" if weight[1] is Weighting.GIVEN else "no weight"
