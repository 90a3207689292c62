"""Metrics; several workers are as many rows made by hand, what one all-reduce would bring together."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

import edt_hvd
from edt_hvd import metrics
from edt_hvd.reduction.header import rounded

pytestmark = pytest.mark.usefixtures("alone")


class Sent(Exception):  # noqa: N818 - it stops a call, nothing has gone wrong
    """A worker has given its row away."""


def on_workers(calls: Sequence[Callable[[], Any]]) -> Any:
    """What every worker gets when the n-th makes the n-th call of a collective."""
    rows: list[Any] = []

    def send(row: Any, name: str) -> Any:
        rows.append(row.copy())
        raise Sent(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metrics, "gather", send)
        for call in calls:
            with pytest.raises(Sent):
                call()
        patch.setattr(metrics, "gather", lambda row, name: np.concatenate(rows))
        found = [call() for call in calls]
    assert len({str(each) for each in found}) == 1
    return found[0]


def bits(value: float) -> bytes:
    return np.float64(value).tobytes()


def test_the_structure_is_kept() -> None:
    means = edt_hvd.average({"b": 2, "a": torch.tensor([1.0, 3.0]), "c": torch.tensor([1, 2])}, weight=7)
    assert list(means) == ["b", "a", "c"]
    assert means["b"] == 2.0
    assert torch.equal(means["a"], torch.tensor([1.0, 3.0]))
    assert means["c"].dtype == torch.float32
    assert edt_hvd.average(0.25) == 0.25


@pytest.mark.parametrize("metric", [1j, torch.tensor(1j), np.array(["1"])])
def test_metrics_that_are_not_real_are_refused(metric: Any) -> None:
    with pytest.raises(TypeError, match=r"'name' is .*; give a real number"):
        edt_hvd.average({"name": metric})
    with pytest.raises(TypeError, match=r"values is .*; give a real number"):
        edt_hvd.Mean().update(metric)


def test_numpy_numbers_and_arrays_are_metrics() -> None:
    means = edt_hvd.average(
        {"number": np.float32(0.5), "array": np.array([1, 2], dtype=np.float32), "counts": np.arange(2)}
    )
    assert (type(means["number"]), means["number"]) == (float, 0.5)
    assert (means["array"].dtype, means["array"].tolist()) == (np.float32, [1.0, 2.0])
    assert (means["counts"].dtype, means["counts"].tolist()) == (np.float32, [0.0, 1.0])
    mean = edt_hvd.Mean()
    mean.update(np.float32(0.5))
    mean.update(np.array([True, False, True]))
    assert mean.compute() == 2.5 / 4


@pytest.mark.parametrize("weight", ["3", 3j, torch.tensor([1.0, 2.0])])
def test_weights_that_are_no_number_are_refused(weight: Any) -> None:
    with pytest.raises(TypeError, match="average: weight "):
        edt_hvd.average(1.0, weight=weight)
    with pytest.raises(TypeError, match="update: weight "):
        edt_hvd.Mean().update(1.0, weight)


@given(st.lists(st.booleans(), min_size=1, max_size=60), st.data())
def test_a_share_of_samples_is_bitwise_the_same_for_every_division(
    right: list[bool], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(right)), max_size=5)))
    shares = [right[a:b] for a, b in zip([0, *cuts], [*cuts, len(right)], strict=True)]
    alone = edt_hvd.average(sum(right) / len(right), weight=len(right))
    calls = [
        lambda share=share: edt_hvd.average(sum(share) / len(share) if share else math.nan, weight=len(share))
        for share in shares
    ]
    assert bits(on_workers(calls)) == bits(alone) == bits(sum(right) / len(right))


values_of_a_batch = st.lists(st.floats(width=32), max_size=6)


@given(st.lists(st.tuples(values_of_a_batch, st.integers(0, 9)), min_size=1, max_size=12), st.data())
def test_a_collected_mean_is_bitwise_the_same_for_every_division(
    batches: list[tuple[list[float], int]], data: st.DataObject
) -> None:
    alone, workers = edt_hvd.Mean(), [edt_hvd.Mean() for _ in range(data.draw(st.integers(1, 4)))]
    for values, weight in [*batches, ([1.0], 1)]:
        tensor = torch.tensor(values)
        alone.update(tensor, weight)
        workers[data.draw(st.integers(0, len(workers) - 1))].update(tensor, weight)
    assert bits(on_workers([each.compute for each in workers])) == bits(alone.compute())


# The upper halves of the mantissas sum to -3, the lower ones to 3.
@example([2.0**52 + 1, -(2.0**52) - 3 * 2.0**26 + 2], 1.0)
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1), st.floats(1e-300, 1e300))
def test_a_collected_mean_of_a_tensor_is_the_correctly_rounded_exact_one(
    values: list[float], weight: float
) -> None:
    mean = edt_hvd.Mean()
    mean.update(torch.tensor(values, dtype=torch.float64), weight)
    mean.update(1.0)
    exact = (sum(map(Fraction, values)) * Fraction(weight) + 1) / (len(values) * Fraction(weight) + 1)
    assert mean.compute() == rounded(exact)


def test_what_a_mean_is_collected_from() -> None:
    mean = edt_hvd.Mean()
    mean.update(torch.tensor([[True, False], [True, True]]))
    mean.update(torch.tensor([3, 1]), weight=2)
    mean.update(True)
    mean.update(torch.tensor(0.5, requires_grad=True, dtype=torch.bfloat16), weight=0.5)
    mean.update(torch.zeros(0))
    assert mean.compute() == (3 + 8 + 1 + 0.25) / (4 + 4 + 1 + 0.5)
    mean.reset()
    mean.update(0.25)
    assert mean.compute() == 0.25


def test_inf_nan_and_sums_beyond_float64_in_a_collected_mean() -> None:
    mean = edt_hvd.Mean()
    for _ in range(3):
        mean.update(1.7e308)
    assert mean.compute() == 1.7e308
    mean.update(math.nan, weight=0)
    assert mean.compute() == 1.7e308
    mean.update(-math.inf)
    assert mean.compute() == -math.inf
    mean.update(math.inf)
    assert math.isnan(mean.compute())


def test_a_mean_of_nothing_and_bad_updates_are_refused() -> None:
    mean = edt_hvd.Mean()
    with pytest.raises(ValueError, match="call update first"):
        mean.compute()
    with pytest.raises(ValueError, match="weight=-1 is negative"):
        mean.update(1.0, weight=-1)
    with pytest.raises(TypeError, match="update: values is a str"):
        mean.update("1.0")  # type: ignore[arg-type]
