"""Metrics over all workers, summed exactly: they do not depend on which worker counted what."""

import math
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
_UNIT = 2**1074  # every float64 is a whole number of 2**-1074
_WORDS = 36  # of 64 bits that any sum of float64 numbers can be written out with, in these units


def average(metrics: Metrics, weight: float = 1.0) -> Any:
    """The weighted mean of metrics over all workers. A collective: every worker must call it.

    Each weighted metric is rounded to 48 significant bits, so that a mean times the number of samples it was
    taken over is the count it came from; their sum is exact. So a share of samples is bitwise the same for
    every number of workers, where it was computed in float64 as Python's numbers are: a mean in float32 has
    lost the count. Means of other numbers are where `Mean` collects them by micro-batch.

    Args:
        metrics: a number, a tensor, or a mapping of names to numbers and tensors; the same names and
            shapes on every worker.
        weight: this worker's weight, such as its number of samples. Not negative; with 0 its metrics do not
            count, even if they are nan.

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
    tensors = {name: _as_float64(f"average: metric {name!r}", value) for name, value in sorted(named.items())}
    values = np.concatenate([tensor.reshape(-1).numpy() for tensor in tensors.values()])
    row = np.zeros(1, dtype=[("values", np.float64, values.shape), ("weight", np.float64)])
    row["values"][0], row["weight"] = _weighted(values, weight), weight
    rows = gather(row, "edt.average")
    total = exact_sum(rows["weight"].tolist())
    if total == 0:
        raise ValueError("average: the weights of all workers sum to zero; at least one must have samples")
    found = [exact_sum(column) / total for column in rows["values"].T.tolist()]
    flat = torch.tensor(found, dtype=torch.float64)
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
        self._sum = Fraction()
        self._special = 0.0  # inf and nan among the values
        self._weight = Fraction()

    def update(self, values: float | torch.Tensor, weight: float = 1.0) -> None:
        """Take in a number, or every element of a tensor.

        Args:
            values: floats, integers or booleans, of any shape.
            weight: of each of them, such as the number of samples that a loss is the mean of. Not negative;
                with 0 they do not count, even if they are nan.

        Raises:
            ValueError: a negative weight.
            TypeError: neither a number nor a tensor.
        """
        if not 0 <= weight < float("inf"):
            raise ValueError(f"update: weight={weight} is negative or no number; give a number of samples")
        found = _as_float64("update: values", values).reshape(-1).tolist()
        part = exact_sum(found) * weight if weight else 0.0
        if math.isfinite(part):
            self._sum += Fraction(part)
        else:
            self._special += part
        self._weight += Fraction(weight) * len(found)

    def compute(self) -> float:
        """The weighted mean over all workers. A collective: every worker must call it.

        Raises:
            ValueError: nothing with a weight was taken in, on any worker.
        """
        world.size()
        fields = [("sum", np.int64, (_WORDS,)), ("weight", np.int64, (_WORDS,)), ("special", np.float64)]
        row = np.zeros(1, dtype=fields)
        row["sum"][0], row["weight"][0] = _words(self._sum), _words(self._weight)
        row["special"] = self._special
        rows = gather(row, "edt.mean")
        total, weight = sum(map(_whole, rows["sum"])), sum(map(_whole, rows["weight"]))
        special = exact_sum(rows["special"].tolist())
        if weight == 0:
            raise ValueError("compute: there are no values with a weight, on any worker; call update first")
        return special if special else rounded(Fraction(total, weight))


def _weighted(values: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    if weight == 1:
        return values
    if weight == 0:
        return np.zeros_like(values)
    with np.errstate(over="ignore"):  # inf, as torch has it
        mantissa, exponent = np.frexp(values * weight)
        product: NDArray[np.float64] = np.ldexp(
            np.rint(np.ldexp(mantissa, _PRODUCT_BITS)), exponent - _PRODUCT_BITS
        )
    return product


def _words(value: Fraction) -> NDArray[np.int64]:
    """A sum of float64 numbers as a whole number of units, in 64-bit words, the lowest first."""
    units = int(value * _UNIT)
    return np.frombuffer(units.to_bytes(8 * _WORDS, "little", signed=True), dtype="<i8")


def _whole(words: NDArray[np.int64]) -> int:
    """The whole number that `_words` wrote."""
    return int.from_bytes(words.astype("<i8").tobytes(), "little", signed=True)


def _as_float64(what: str, value: Any) -> torch.Tensor:
    if not isinstance(value, torch.Tensor | float | int):
        raise TypeError(f"{what} is a {type(value).__name__}; give a number or a tensor")
    if not isinstance(value, torch.Tensor):
        return torch.tensor(value, dtype=torch.float64)
    return value.detach().to("cpu", torch.float64)


def _like(original: Any, mean: torch.Tensor) -> Any:
    if not isinstance(original, torch.Tensor):
        return mean.item()
    dtype = original.dtype if original.is_floating_point() else torch.float32
    return mean.reshape(original.shape).to(original.device, dtype)
