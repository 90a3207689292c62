"""Metrics over all workers, summed exactly: they do not depend on which worker counted what."""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from edt_hvd import collectives
from edt_hvd.reduction.header import exact_sum, gather, rounded

Number = float | np.number[Any] | np.bool_
Values = Number | NDArray[Any] | torch.Tensor
Metrics = Values | Mapping[Any, Values]

_PRODUCT_BITS = 48
_UNIT_BITS = 1074  # every float64 is a whole number of 2**-1074, every product of two of 2**-2148
_WORDS = 68  # of 64 bits that any sum of such products can be written out with, in these units
_HALF_BITS = 26  # of the 53 of a float64: those of either half
_AT_ONCE = 2**20  # numbers; up to 2**26 halves have a sum that is exact in float64


def average(metrics: Metrics, weight: Number | torch.Tensor = 1.0) -> Any:
    """Return the weighted mean of metrics over all workers. A collective: every worker must call it.

    Each weighted metric is rounded to 48 significant bits, and the sum of these is exact. The rounding
    recovers a count from a mean times its number of samples. So a share of samples, such as an accuracy, is
    bitwise the same for every number of workers if it was computed in float64, as Python's numbers are. A
    mean in float32 has lost the count. For means of other values use `Mean`, which collects them by
    micro-batch.

    Args:
        metrics: a number, a tensor or array, or a mapping of names to these; the same names and shapes on
            every worker.
        weight: this worker's weight, such as its number of samples. Not negative; with 0 its metrics are
            ignored, even if they are nan.

    Returns:
        The same structure: a float for a number; a tensor or array for a tensor or array, with its dtype
        (float32 for integers) and device; a dict for a mapping.

    Raises:
        RuntimeError: called before the elastic function, where workers may join; or, on every worker, they
            call different collectives.
        ValueError: a negative weight, weights that sum to zero, or no metrics.
        TypeError: a metric that is neither a real number nor a tensor of them; a weight that is no number.
    """
    factor = _as_weight("average", weight)
    named = metrics if isinstance(metrics, Mapping) else {"": metrics}
    if not named:
        raise ValueError("average: metrics is empty; give at least one metric, the same ones on every worker")
    names = sorted(named, key=repr)  # names of several types have no order of their own
    tensors = {name: _as_float64(f"average: metric {name!r}", named[name]) for name in names}
    values = np.concatenate([tensor.reshape(-1).numpy() for tensor in tensors.values()])
    row = np.zeros(1, dtype=[("values", np.float64, values.shape), ("weight", np.float64)])
    row["values"][0], row["weight"] = _weighted(values, factor), factor
    collectives.begin("edt_hvd.average()")
    rows = gather(row, "edt.average")
    total = exact_sum(rows["weight"].tolist())
    if total == 0:
        raise ValueError("average: the weights of all workers sum to zero; at least one must have samples")
    found = [exact_sum(column) / total for column in rows["values"].T.tolist()]
    flat = torch.tensor(found, dtype=torch.float64, device="cpu")
    parts = flat.split([tensor.numel() for tensor in tensors.values()])  # type: ignore[no-untyped-call]
    means = {name: _like(named[name], part) for name, part in zip(tensors, parts, strict=True)}
    return {name: means[name] for name in named} if isinstance(metrics, Mapping) else means[""]


class Mean:
    """Collects a mean over micro-batches and workers, bitwise the same however these were divided.

    Use it for evaluations, and for other means over more than one step:

        accuracy = edt_hvd.Mean()
        for step in test_loader:  # an ElasticDataLoader
            for inputs, targets in step:
                accuracy.update(model(inputs).argmax(1) == targets)
        print(accuracy.compute())

    It belongs to the workers of the present world: compute it before the next commit.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Discard all values."""
        self._sum = 0  # of the weighted values, in units of 2**-2148
        self._special = 0.0  # inf and nan among the values
        self._weight = 0  # in units of 2**-1074

    def update(self, values: Values, weight: Number | torch.Tensor = 1.0) -> None:
        """Add a number, or every element of a tensor or array.

        Args:
            values: floats, integers or booleans, of any shape.
            weight: weight of each value, such as the number of samples that a loss is the mean of. Not
                negative; with 0 the values are ignored, even if they are nan.

        Raises:
            ValueError: a negative weight.
            TypeError: values that are neither a real number nor a tensor of them, or a weight that is no
                number.
        """
        factor = _as_weight("update", weight)
        found = _as_float64("update: values", values).reshape(-1).numpy()
        if not factor:
            return
        finite = np.isfinite(found)
        self._special += exact_sum(found[~finite].tolist())
        weight_units = _units(np.array([factor]))
        self._sum += _units(found[finite]) * weight_units
        self._weight += weight_units * len(found)

    def compute(self) -> float:
        """Return the weighted mean over all workers. A collective: every worker must call it.

        Raises:
            RuntimeError: called before the elastic function, where workers may join; or, on every worker,
                they call different collectives.
            ValueError: no value with a positive weight was added on any worker.
        """
        collectives.begin("edt_hvd.Mean.compute()")
        fields = [("sum", np.int64, (_WORDS,)), ("weight", np.int64, (_WORDS,)), ("special", np.float64)]
        row = np.zeros(1, dtype=fields)
        row["sum"][0], row["weight"][0] = _words(self._sum), _words(self._weight)
        row["special"] = self._special
        rows = gather(row, "edt.mean")
        total, weight = sum(map(_whole, rows["sum"])), sum(map(_whole, rows["weight"]))
        special = exact_sum(rows["special"].tolist())
        if weight == 0:
            raise ValueError("compute: there are no values with a weight, on any worker; call update first")
        return special if special else rounded(Fraction(total, weight << _UNIT_BITS))


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


def _units(values: NDArray[np.float64]) -> int:
    """The exact sum of finite numbers, in units of 2**-1074.

    The halves of their mantissas are summed apart, exponent by exponent: float64 holds these sums exactly.
    """
    total = 0
    for start in range(0, len(values), _AT_ONCE):
        mantissas, exponents = np.frexp(values[start : start + _AT_ONCE])
        bins = exponents + _UNIT_BITS
        whole = np.ldexp(mantissas, 53)
        high = np.floor(np.ldexp(whole, -_HALF_BITS))
        low = whole - np.ldexp(high, _HALF_BITS)
        highs, lows = np.bincount(bins, high), np.bincount(bins, low)
        for shift in np.flatnonzero((highs != 0) | (lows != 0)).tolist():
            total += ((int(highs[shift]) << _HALF_BITS) + int(lows[shift])) << shift
    return total >> 53  # of the mantissas, which were taken for whole numbers


def _words(units: int) -> NDArray[np.int64]:
    """A whole number of units in 64-bit words, the lowest first."""
    return np.frombuffer(units.to_bytes(8 * _WORDS, "little", signed=True), dtype="<i8")


def _whole(words: NDArray[np.int64]) -> int:
    """The whole number that `_words` wrote."""
    return int.from_bytes(words.astype("<i8").tobytes(), "little", signed=True)


def _as_weight(where: str, weight: Any) -> float:
    found = _as_float64(f"{where}: weight", weight)
    if found.numel() != 1:
        raise TypeError(f"{where}: weight has {found.numel()} elements; give one number")
    if not 0 <= found.item() < float("inf"):
        raise ValueError(
            f"{where}: weight={weight} is negative or no number; give the number of samples, for example"
        )
    return found.item()


def _as_float64(what: str, value: Any) -> torch.Tensor:
    if isinstance(value, torch.Tensor) and not value.is_complex():
        return value.detach().to("cpu", torch.float64)
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biuf":
        return torch.from_numpy(np.array(value, dtype=np.float64))
    if isinstance(value, float | int):
        return torch.tensor(value, dtype=torch.float64, device="cpu")
    dtype = f" of {value.dtype}" if isinstance(value, torch.Tensor | np.ndarray) else ""
    raise TypeError(f"{what} is a {type(value).__name__}{dtype}; give a real number or a tensor of them")


def _like(original: Any, mean: torch.Tensor) -> Any:
    if isinstance(original, np.ndarray):
        dtype = original.dtype if original.dtype.kind == "f" else np.dtype(np.float32)
        return mean.reshape(original.shape).numpy().astype(dtype)
    if not isinstance(original, torch.Tensor):
        return mean.item()
    kept = original.dtype if original.is_floating_point() else torch.float32
    return mean.reshape(original.shape).to(original.device, kept)
