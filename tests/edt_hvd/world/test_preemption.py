"""Notices that a worker is to leave, in processes of their own where signals are concerned."""

import signal

import pytest

from interpreters import Interpreters

BEGIN = "import os, signal\nfrom edt_hvd.world import preemption\n"
TWICE = """
preemption.listen()
os.kill(os.getpid(), signal.SIGTERM)
print(preemption.next_notice(30), flush=True)
os.kill(os.getpid(), signal.SIGTERM)
"""
OWN_HANDLER = """
signal.signal(signal.SIGTERM, lambda *_: print("mine"))
preemption.listen()
os.kill(os.getpid(), signal.SIGTERM)
print(preemption.is_listening(), preemption.next_notice(0))
"""
AFTER_TRAINING = """
preemption.listen()
preemption.stop_listening()
os.kill(os.getpid(), signal.SIGTERM)
"""
FORKED = """
preemption.listen()
if (child := os.fork()) == 0:
    os.kill(os.getpid(), signal.SIGTERM)
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""
AT_EXIT = """
import atexit
preemption.listen()
atexit.register(print, "the last word")
atexit.register(preemption.end)
"""


@pytest.mark.parametrize(
    "body, printed, status",
    [
        (TWICE, "SIGTERM\n", -signal.SIGTERM),
        (OWN_HANDLER, "mine\nFalse None\n", 0),
        (AFTER_TRAINING, "", -signal.SIGTERM),
        (FORKED, "15\n", 0),
    ],
    ids=["the second ends", "the script's own handler wins", "after training", "in a forked process"],
)
def test_the_first_sigterm_is_a_notice(
    interpreters: Interpreters, body: str, printed: str, status: int
) -> None:
    done = interpreters.run(BEGIN + body)
    assert (done.stdout, done.returncode) == (printed, status), done.stderr


def test_the_end_of_a_job_leaves_a_process_alone_that_ends_as_it_is(interpreters: Interpreters) -> None:
    done = interpreters.run(BEGIN + AT_EXIT)
    assert (done.stdout, done.stderr, done.returncode) == ("the last word\n", "", 0)
