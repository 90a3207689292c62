import pytest
from hypothesis import given
from hypothesis import strategies as st

from edt_launch.simulator.due import Due, fill
from small import job

AMOUNTS = st.floats(0.01, 1000)


@given(st.floats(0, 1000), st.dictionaries(st.integers(), st.tuples(AMOUNTS, AMOUNTS), min_size=1))
def test_filling_is_max_min_fair(total, entries):
    demands = {key: demand for key, (demand, _) in entries.items()}
    weights = {key: weight for key, (_, weight) in entries.items()}
    shares = fill(total, demands, weights)
    assert sum(shares.values()) == pytest.approx(min(total, sum(demands.values())))
    unmet = [key for key in shares if shares[key] < demands[key] * (1 - 1e-9)]
    level = max((shares[key] / weights[key] for key in shares), default=0.0)
    for key in shares:
        assert shares[key] <= demands[key] * (1 + 1e-9)
    for key in unmet:
        assert shares[key] / weights[key] == pytest.approx(level)


def test_users_share_alike_and_their_jobs_share_what_is_theirs():
    live = [job("a1"), job("a2"), job("b1", user="bob")]
    assert Due(8)(live) == {"a1": 2, "a2": 2, "b1": 4}


def test_what_a_user_cannot_use_goes_to_others():
    live = [job("a1"), job("b1", user="bob", max=1)]
    assert Due(8)(live) == {"a1": 7, "b1": 1}


def test_without_users_all_jobs_share_alike():
    live = [job("a1"), job("a2"), job("b1", user="bob", max=8)]
    assert Due(6, by_user=False)(live) == {"a1": 2, "a2": 2, "b1": 2}
