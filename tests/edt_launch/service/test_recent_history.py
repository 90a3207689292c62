from math import inf

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from databases import sqlite_at
from edt_launch.service.database.records import AllocationRecord
from edt_launch.service.recent_history import KEPT, RecentHistory

MOST = 50


def change(job: str, time: float, size: int) -> AllocationRecord:
    return AllocationRecord(job, "ann", time, 0, size, (), "for the test")


steps = st.lists(
    st.tuples(
        st.sampled_from("abc"), st.integers(0, 2), st.floats(0, KEPT), st.sampled_from([9.0, 99.0, 999.0])
    ),
    max_size=12,
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_it_says_what_the_database_says(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, float, float]]
) -> None:
    store = sqlite_at(tmp_path_factory.mktemp("h") / "edt.db")
    recent, now = RecentHistory(store.history, MOST), 1000.0
    for job, size, later, seconds in steps:
        now += later
        store.history.add([change(job, now, size)])
        assert list(recent.last(seconds, now)) == list(store.history.window(now - seconds, inf, MOST))
    store.close()
