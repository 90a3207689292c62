"""When a warm server ends."""

import pytest

from edt_hvd.warm.server import IDLE_LIMIT, reason_to_end


@pytest.mark.parametrize("gone", [False, True])
def test_stays_as_long_as_it_has_workers(gone: bool) -> None:
    assert reason_to_end(workers=1, idle=1e6, agent_gone=gone) is None


def test_ends_with_the_agent() -> None:
    assert reason_to_end(workers=0, idle=0.0, agent_gone=True) == "the agent has gone"


def test_waits_for_the_next_worker_for_a_while() -> None:
    assert reason_to_end(workers=0, idle=IDLE_LIMIT - 1, agent_gone=False) is None
    assert reason_to_end(workers=0, idle=IDLE_LIMIT, agent_gone=False) == "no worker for 60 s"
