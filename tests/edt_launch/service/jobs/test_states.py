import itertools

import pytest

from edt_launch.service.jobs.states import ENDED, HAS_LAUNCHER, LIVE, NEXT, State


def test_every_state_is_in_the_table() -> None:
    assert NEXT.keys() == set(State)
    assert frozenset({State.SUCCEEDED, State.FAILED, State.STOPPED}) == ENDED
    assert set(State) == LIVE | ENDED


@pytest.mark.parametrize("state", sorted(LIVE))
def test_every_live_job_can_be_stopped(state: State) -> None:
    after = {state}
    for _ in State:
        after |= set(itertools.chain.from_iterable(NEXT[one] for one in after & {state, State.STOPPING}))
    assert State.STOPPED in after


@pytest.mark.parametrize("state", sorted(HAS_LAUNCHER))
def test_a_launcher_may_end_at_any_moment(state: State) -> None:
    assert {State.SUCCEEDED, State.FAILED} <= NEXT[state]
