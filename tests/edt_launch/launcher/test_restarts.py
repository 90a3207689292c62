"""Whether a job that has ended is started again."""

from dataclasses import replace

import pytest

from edt_launch.core.events import Failed
from edt_launch.launcher.restarts import (
    HOST_LOST,
    NOTICE_DELAY,
    End,
    GiveUp,
    Leave,
    Restart,
    decide,
    is_loss,
)

KILLED = Failed(1, "h", 0, None, 0, 137, "SIGKILL")
RAISED = Failed(1, "h", 0, None, 0, 1)
LOST = End(has_trained=True, ended_by=KILLED, is_lost=True, reason="rank 0 failed")
LEFT = End(has_trained=True, has_left=True, reason="rank 0 left")
FAILED = replace(LOST, ended_by=RAISED, is_lost=False)


@pytest.mark.parametrize(
    "end, reason",
    [
        (LOST, "rank 0 failed"),
        (replace(LOST, has_returned=True, has_checkpointed=True), "rank 0 failed"),
        (replace(FAILED, has_checkpointed=True), "rank 0 failed"),
    ],
)
def test_what_is_restarted(end, reason):
    assert decide(end, 0, 1) == Restart(reason)


def test_slots_that_were_given_up_are_left_alone_for_a_while():
    assert decide(LEFT, 0, 1) == Restart("rank 0 left", NOTICE_DELAY)


@pytest.mark.parametrize(
    "end", [LEFT, LOST, replace(LEFT, has_trained=False), replace(LOST, has_trained=False)]
)
def test_a_job_that_is_to_pause_is_left(end):
    assert decide(replace(end, is_pausing=True), 3, 3) == Leave(end.reason)


@pytest.mark.parametrize("end", [FAILED, replace(LOST, succeeded=True), replace(LOST, is_wanted=True)])
def test_a_job_that_is_to_pause_may_end_before(end):
    assert isinstance(decide(replace(end, is_pausing=True), 0, 3), GiveUp)


@pytest.mark.parametrize(
    "end, words",
    [
        (replace(LOST, succeeded=True), "succeeded"),
        (replace(LOST, is_wanted=True), "told to end"),
        (replace(LOST, has_trained=False), "not begun"),
        (replace(LOST, ended_by=None, is_lost=False), "no worker was lost"),
        (FAILED, "would fail the same way"),
        (replace(FAILED, has_checkpointed=True, has_returned=True), "after training"),
    ],
)
def test_what_is_not(end, words):
    verdict = decide(end, 0, 1)
    assert isinstance(verdict, GiveUp)
    assert words in verdict.reason


def test_a_loss_before_training_counts_once_the_job_has_trained():
    end = replace(LOST, has_trained=False)
    assert isinstance(decide(end, 0, 3), GiveUp)
    assert isinstance(decide(end, 1, 3), Restart)


@pytest.mark.parametrize("restarts, most, is_restarted", [(0, 0, False), (2, 3, True), (3, 3, False)])
def test_only_so_often(restarts, most, is_restarted):
    verdict = decide(LOST, restarts, most)
    assert isinstance(verdict, Restart) == is_restarted
    if not is_restarted:
        assert verdict == GiveUp(f"it has been restarted {restarts} of {most} times")


@pytest.mark.parametrize(
    "failure, is_remote, lost",
    [
        (KILLED, False, True),
        (RAISED, True, False),
        (replace(RAISED, exit_code=HOST_LOST), True, True),
        (replace(RAISED, exit_code=HOST_LOST), False, False),
        (replace(RAISED, exit_code=0), False, True),
    ],
)
def test_a_loss_is_a_signal_or_a_host_that_has_gone(failure, is_remote, lost):
    assert is_loss(failure, is_remote) == lost
