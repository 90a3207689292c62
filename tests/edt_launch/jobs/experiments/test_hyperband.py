from itertools import groupby

from hypothesis import given
from hypothesis import strategies as some

from edt_launch.jobs.experiments.hyperband import slots


def test_the_plan_is_that_of_the_paper() -> None:
    """Table 1 of Li et al., for 81 and 3: numbers and budgets of all rungs."""
    plan = groupby(slots(3, 81, 10_000), key=lambda slot: (slot.budget, slot.before))
    assert [(budget, len(list(rung))) for (budget, _), rung in plan] == [
        *[(1, 81), (3, 27), (9, 9), (27, 3), (81, 1)],
        *[(3, 34), (9, 11), (27, 3), (81, 1)],
        *[(9, 15), (27, 5), (81, 1)],
        *[(27, 8), (81, 2)],
        (81, 5),
    ]


@given(some.floats(1.5, 10), some.integers(1, 10**9), some.integers(1, 500))
def test_rungs_follow_each_other(eta: float, resource: int, most: int) -> None:
    plan = slots(eta, resource, most)
    assert 1 <= len(plan) <= most
    for number, slot in enumerate(plan):
        assert 1 <= slot.budget <= resource
        if slot.before:
            assert slot.before.stop <= number
            assert slot.place < len(slot.before)
            before = {plan[earlier].budget for earlier in slot.before}
            assert before == {min(before)}
            assert max(before) <= slot.budget
