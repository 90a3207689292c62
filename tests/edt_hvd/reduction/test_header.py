import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_hvd.errors import GradientError
from edt_hvd.reduction import header
from edt_hvd.reduction.header import Loss, check_loops, check_steps, exact_sum, exchange, rounded


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_a_sum_is_the_correctly_rounded_exact_one(values: list[float]) -> None:
    assert exact_sum(values) == rounded(sum(map(Fraction, values), Fraction()))


@pytest.mark.parametrize(
    "values, expected",
    [
        ([math.inf, 1.0], math.inf),
        ([1e308, 1e308, -math.inf], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan, math.inf], math.nan),
        ([1e308, 1e308], math.inf),
        ([1e308, 1e308, -1e308], 1e308),
        ([], 0.0),
    ],
)
def test_inf_and_nan_are_as_in_ieee_754(values: list[float], expected: float) -> None:
    np.testing.assert_equal(exact_sum(values), expected)


@pytest.mark.usefixtures("alone")
def test_one_worker_that_wants_to_stop_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    assert exchange(True, [], 0, []).stop_wanted

    def two_rows(row: "np.ndarray", name: str) -> "np.ndarray":
        other = row.copy()
        other["stop"], other["losses"][0, 0], other["reports"] = 0, 2.0, 9
        return np.concatenate([other, row])

    monkeypatch.setattr(header, "gather", two_rows)
    found = exchange(True, [Loss(1.0)], 1, [np.array([1, 2, 3], dtype=np.int32)])
    assert (found.stop_wanted, found.loss) == (True, 3.0)
    assert found.reports[0].tolist() == [[9, 9, 9], [1, 2, 3]]


def test_an_optimizer_has_to_step_on_every_worker() -> None:
    check_steps([1, 1, 1])
    with pytest.raises(GradientError, match="1 on rank 0, 0 on rank 1, 2 on rank 3; every worker has to"):
        check_steps([1, 0, 1, 2])


def test_a_loop_that_was_left_on_some_workers_only_is_named() -> None:
    check_loops([1, 1, 1])
    said = r"since the last step, rank 0, 2 has begun none; rank 1 has begun 1\. .* by break .* step\.loss"
    with pytest.raises(GradientError, match=said):
        check_loops([0, 1, 0])
