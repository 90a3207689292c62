from dataclasses import replace
from itertools import groupby
from typing import Any

import pytest

from edt_launch.service.experiments.records import RunRecord, TrialState
from edt_launch.service.experiments.searches.plan import Next, following, slots, total
from edt_launch.service.experiments.searches.spec import MAX_TRIALS, SearchSpec
from plays import UNITS, budgets, searching, specified


def listed(count: int, **fields: Any) -> SearchSpec:
    return specified("list", {}, configurations=[{"x": i} for i in range(count)], **fields)


def units(algorithm: str, **fields: Any) -> SearchSpec:
    return specified(algorithm, {"units": UNITS}, **fields)


def tried(new: Next, metric: float | None, state: TrialState = TrialState.SUCCEEDED) -> RunRecord:
    return replace(new.run(searching(), f"r{new.number}", 1.0), state=state, metric=metric)


def halving(trials: list[RunRecord]) -> list[Next]:
    """What Hyperband's first bracket of nine, three and one can start."""
    found = following(units("hyperband", max_trials=13, max_parallel=13, **budgets(9)), 7, trials)
    return [new for new in found if new.number < 13]


@pytest.mark.parametrize(
    "spec, expected",
    [
        (specified("random", max_trials=5), 5),
        (specified("random", max_trials=None), MAX_TRIALS),
        (units("grid", max_trials=None), 3),
        (units("grid", max_trials=2), 2),
        (listed(3, max_trials=None), 3),
        (listed(3, max_trials=2), 2),
        (units("hyperband", max_trials=None, **budgets(9)), 22),
    ],
)
def test_a_search_has_so_many_trials(spec: SearchSpec, expected: int) -> None:
    assert total(spec) == expected


def test_a_grid_has_all_points_and_those_that_were_tried_but_once() -> None:
    spec = units("grid", max_trials=None)
    first, second, third = following(spec, 7, [])
    assert [new.parameters["units"] for new in (first, second, third)] == [16, 32, 64]
    assert list(following(spec, 7, [tried(second, None)])) == [first, third]


def test_a_rung_waits_until_the_one_before_is_over() -> None:
    first = halving([])
    assert [new.budget for new in first] == [1] * 9
    most = [tried(new, float(new.number)) for new in first[:8]]
    assert halving([*most, tried(first[8], None, TrialState.RUNNING)]) == []
    second = halving([*most, tried(first[8], -1.0)])
    assert [(new.number, new.budget) for new in second] == [(9, 3), (10, 3), (11, 3)]
    assert [new.point for new in second] == [first[8].point, first[0].point, first[1].point]
    assert second[0].why == "trial 8 is number 1 of its rung; epochs 3"


def test_places_for_which_too_many_have_failed_stay_empty() -> None:
    first = halving([])
    failed = [tried(new, None, TrialState.FAILED) for new in first[1:]]
    (second,) = halving([tried(first[0], 1.0), *failed])
    assert second.number == 9
    (third,) = halving([tried(first[0], 1.0), *failed, tried(second, 1.0)])
    assert (third.number, third.budget) == (12, 9)
    assert halving([tried(new, None, TrialState.FAILED) for new in first]) == []


def test_the_plan_is_that_of_the_paper() -> None:
    """Table 1 of Li et al., for 81 and 3: numbers and budgets of all rungs."""
    plan = groupby(slots(3, 81), key=lambda slot: (slot.budget, slot.before))
    assert [(budget, len(list(rung))) for (budget, _), rung in plan] == [
        *[(1, 81), (3, 27), (9, 9), (27, 3), (81, 1)],
        *[(3, 34), (9, 11), (27, 3), (81, 1)],
        *[(9, 15), (27, 5), (81, 1)],
        *[(27, 8), (81, 2)],
        (81, 5),
    ]
