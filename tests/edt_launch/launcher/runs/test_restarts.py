"""Whether a job that has ended is started again."""

from dataclasses import replace

import pytest

from edt_launch.core.history.events import Failed, Finished
from edt_launch.launcher.run_summary import RunSummary
from edt_launch.launcher.runs.restarts import HOST_LOST, NOTICE_DELAY, NoRestart, Restart, decide, is_loss
from edt_launch.launcher.termination import Ending

KILLED = Failed(1, "h", 0, None, 0, 137, "SIGKILL")
RAISED = Failed(1, "h", 0, None, 0, 1)
RUN = RunSummary(has_trained=True, outcome=Finished(1, "rank 0 failed"))
NEW = replace(RUN, has_trained=False)
GONE = replace(RUN, outcome=Finished(1, "rank 0 left", left=True))
SUCCEEDED = replace(RUN, outcome=Finished(0, "rank 0 failed"))
BETTER = replace(RUN, has_checkpointed=True)
RETURNED = replace(BETTER, has_returned=True)
PAUSING, ENDED = Ending(is_pausing=True), Ending(first=15)

LOST, FAILED, LEFT = (KILLED, True), (RAISED, False), (None, False)
"""By what a run has ended, and whether that was the loss of a worker."""


@pytest.mark.parametrize("run, end", [(RUN, LOST), (RETURNED, LOST), (BETTER, FAILED)])
def test_what_is_restarted(run, end):
    assert decide(run, Ending(), *end, 0, 1) == Restart("rank 0 failed")


def test_slots_that_were_given_up_are_left_alone_for_a_while():
    assert decide(GONE, Ending(), *LEFT, 0, 1) == Restart("rank 0 left", NOTICE_DELAY)


@pytest.mark.parametrize(
    "run, end", [(GONE, LEFT), (RUN, LOST), (replace(GONE, has_trained=False), LEFT), (NEW, LOST)]
)
def test_a_job_that_is_to_pause_is_left(run, end):
    assert decide(run, PAUSING, *end, 3, 3) is NoRestart.LEAVE


@pytest.mark.parametrize(
    "run, ending, end",
    [
        (SUCCEEDED, Ending(), LOST),
        (RUN, ENDED, LOST),
        (NEW, Ending(), LOST),
        (RUN, Ending(), LEFT),
        (RUN, Ending(), FAILED),
    ],
)
def test_what_is_not(run, ending, end):
    assert decide(run, ending, *end, 0, 1) is NoRestart.GIVE_UP


def test_a_loss_before_training_counts_once_the_job_has_trained():
    assert decide(NEW, Ending(), *LOST, 0, 3) is NoRestart.GIVE_UP
    assert isinstance(decide(NEW, Ending(), *LOST, 1, 3), Restart)


@pytest.mark.parametrize("restarts, most, is_restarted", [(0, 0, False), (2, 3, True), (3, 3, False)])
def test_only_so_often(restarts, most, is_restarted):
    assert isinstance(decide(RUN, Ending(), *LOST, restarts, most), Restart) == is_restarted


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
