"""When a job that is to end is made to end."""

from signal import SIGINT, SIGTERM, SIGUSR1

from edt_launch.core.errors import ExitCode
from edt_launch.launcher.termination import GRACE, Ending, Step


def steps(ending, *times):
    taken = []
    for now in times:
        ending, step = ending.decide(now)
        taken.append(step)
    return taken


def test_a_signal_asks_once_and_kills_once_after_the_grace():
    ending = Ending().signalled(100, SIGTERM)
    times = (100, 101, 100 + GRACE - 0.1, 100 + GRACE, 1e9)
    assert steps(ending, *times) == [Step.TERMINATE, Step.WAIT, Step.WAIT, Step.KILL, Step.WAIT]


def test_a_second_ctrl_c_does_not_wait():
    ending, _ = Ending().signalled(100, SIGINT).decide(100)
    assert steps(ending.signalled(100.1, SIGINT), 100.1, 100.2) == [Step.KILL, Step.WAIT]


def test_a_second_sigterm_waits_and_a_ctrl_c_after_it_does_not():
    ending, _ = Ending().signalled(100, SIGTERM).decide(100)
    ending = ending.signalled(101, SIGTERM)
    assert steps(ending, 101) == [Step.WAIT]
    assert steps(ending.signalled(102, SIGINT), 102) == [Step.KILL]


def test_a_pause_is_told_once_and_has_no_grace():
    ending = Ending().signalled(100, SIGUSR1)
    assert steps(ending.signalled(101, SIGUSR1), 101, 102, 1e9) == [Step.PAUSE, Step.WAIT, Step.WAIT]
    assert ending.exit_code is None


def test_a_job_that_is_pausing_can_still_be_ended():
    ending, _ = Ending().signalled(100, SIGUSR1).decide(100)
    ending = ending.signalled(200, SIGTERM)
    assert steps(ending, 200, 200 + GRACE) == [Step.TERMINATE, Step.KILL]
    assert ending.exit_code == ExitCode.TERMINATED
