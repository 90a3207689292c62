"""Metrics over all workers, summed exactly: they do not depend on which worker counted what."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from edt_hvd import world
from edt_hvd.header import exact_sum, gather, rounded

Metrics = float | torch.Tensor | Mapping[str, float | torch.Tensor]

_PRODUCT_BITS = 48
_PARTS = 40  # float64 numbers that any sum of float64 numbers can be written out with


def average(metrics: Metrics, weight: float = 1.0) -> Any:
    """The weighted mean of metrics over all workers. A collective: every worker must call it.

    Each weighted metric is rounded to 48 significant bits, so that a mean times the number of samples it was
    taken over is the count it came from; their sum is exact. So a share of samples is bitwise the same for
    every number of workers. Means of other numbers are where `Mean` collects them by micro-batch.

    Args:
        metrics: a number, a tensor, or a mapping of names to numbers and tensors; the same names and
            shapes on every worker.
        weight: this worker's weight, such as its number of samples. Not negative.

    Returns:
        The same structure: float for a number, tensor (dtype and device kept; float32 for integers) for a
        tensor, dict for a mapping.

    Raises:
        ValueError: a negative weight, or weights that sum to zero.
        TypeError: a metric that is neither a number nor a tensor.
    """
    if not 0 <= weight < float("inf"):
        raise ValueError(
            f"average: weight={weight} is negative or no number; give the number of samples, for example"
        )
    world.size()
    named = metrics if isinstance(metrics, Mapping) else {"": metrics}
    tensors = {name: _as_float64(name, value) for name, value in sorted(named.items())}
    values = np.concatenate([tensor.reshape(-1).numpy() for tensor in tensors.values()])
    row = np.zeros(1, dtype=[("values", np.float64, values.shape), ("weight", np.float64)])
    row["values"][0], row["weight"] = _weighted(values, weight), weight
    rows = gather(row)
    total = exact_sum(rows["weight"].tolist())
    if total == 0:
        raise ValueError("average: the weights of all workers sum to zero; at least one must have samples")
    flat = torch.tensor([exact_sum(column) / total for column in rows["values"].T.tolist()]).double()
    parts = flat.split([tensor.numel() for tensor in tensors.values()])  # type: ignore[no-untyped-call]
    means = {name: _like(named[name], part) for name, part in zip(tensors, parts, strict=True)}
    return {name: means[name] for name in named} if isinstance(metrics, Mapping) else means[""]


class Mean:
    """Collects a mean over micro-batches and workers that is bitwise the same however they were divided.

    For evaluations, and whatever else is averaged over more than a step:

        accuracy = edt_hvd.Mean()
        for step in test_loader:  # an ElasticDataLoader
            for inputs, targets in step:
                accuracy.update(model(inputs).argmax(1) == targets)
        print(accuracy.compute())

    It belongs to the workers there are: compute it before the next commit.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        self._sum: Fraction | float = Fraction()
        self._weight = Fraction()

    def update(self, values: float | torch.Tensor, weight: float = 1.0) -> None:
        """Take in a number, or every element of a tensor.

        Args:
            values: floats, integers or booleans, of any shape.
            weight: of each of them, such as the number of samples that a loss is the mean of. Not negative.

        Raises:
            ValueError: a negative weight.
            TypeError: neither a number nor a tensor.
        """
        if not 0 <= weight < float("inf"):
            raise ValueError(f"update: weight={weight} is negative or no number; give a number of samples")
        found = _as_float64("values", values).reshape(-1).tolist()
        part = exact_sum(found) * weight
        self._sum = self._sum + (Fraction(part) if np.isfinite(part) else part)
        self._weight += Fraction(weight) * len(found)

    def compute(self) -> float:
        """The weighted mean over all workers. A collective: every worker must call it.

        Raises:
            ValueError: nothing with a weight was taken in, on any worker.
        """
        world.size()
        row = np.zeros(1, dtype=[("sum", np.float64, (_PARTS,)), ("weight", np.float64, (_PARTS,))])
        row["sum"][0], row["weight"][0] = _parts(self._sum), _parts(self._weight)
        rows = gather(row)
        total = exact_sum(rows["weight"].ravel().tolist())
        if total == 0:
            raise ValueError("compute: there are no values with a weight, on any worker; call update first")
        return exact_sum(rows["sum"].ravel().tolist()) / total


def _weighted(values: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    if weight == 1:
        return values
    mantissa, exponent = np.frexp(values * weight)
    rounded_to_bits: NDArray[np.float64] = np.ldexp(
        np.rint(np.ldexp(mantissa, _PRODUCT_BITS)), exponent - _PRODUCT_BITS
    )
    return rounded_to_bits


def _parts(value: Fraction | float) -> list[float]:
    """float64 numbers whose exact sum is `value`, a sum of float64 numbers; padded with zeros."""
    if isinstance(value, float):
        return [value] + [0.0] * (_PARTS - 1)
    parts = []
    while value:
        parts.append(rounded(value))
        value -= Fraction(parts[-1])
    return parts + [0.0] * (_PARTS - len(parts))


def _as_float64(name: str, value: Any) -> torch.Tensor:
    if not isinstance(value, torch.Tensor | float | int):
        raise TypeError(f"average: metric {name!r} is a {type(value).__name__}; give a number or a tensor")
    return torch.as_tensor(value).detach().to("cpu", torch.float64)


def _like(original: Any, mean: torch.Tensor) -> Any:
    if not isinstance(original, torch.Tensor):
        return mean.item()
    dtype = original.dtype if original.is_floating_point() else torch.float32
    return mean.reshape(original.shape).to(original.device, dtype)
