"""When a warm server ends."""

import pytest

from edt_hvd.warm.life import IDLE_LIMIT, End, Stay, decide


@pytest.mark.parametrize("gone", [False, True])
def test_stays_as_long_as_it_has_workers(gone: bool) -> None:
    assert decide(now=1e6, workers=1, idle_since=0.0, agent_gone=gone) == Stay(None)


def test_ends_with_the_agent() -> None:
    assert decide(now=5.0, workers=0, idle_since=5.0, agent_gone=True) == End("the agent has gone")


def test_waits_for_the_next_worker_for_a_while() -> None:
    assert decide(now=7.0, workers=0, idle_since=5.0, agent_gone=False) == Stay(IDLE_LIMIT - 2)
    assert decide(now=5 + IDLE_LIMIT, workers=0, idle_since=5.0, agent_gone=False) == End(
        "no worker for 60 s"
    )
