"""Notices that a worker is to leave, in processes of their own where signals are concerned."""

import signal
import subprocess
import sys

from edt_hvd.world import preemption

BEGIN = "import os, signal\nfrom edt_hvd.world import preemption\n"


def run(body: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", BEGIN + body], capture_output=True, text=True, check=False)


def test_a_notice_is_taken_once() -> None:
    preemption.notify("the spot market")
    assert preemption.next_notice(timeout=30) == "the spot market"
    assert preemption.next_notice(timeout=0) is None


def test_the_first_sigterm_is_a_notice_and_the_second_one_ends() -> None:
    done = run(
        "preemption.listen()\nos.kill(os.getpid(), signal.SIGTERM)\n"
        "print(preemption.next_notice(30), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGTERM)\n"
    )
    assert (done.stdout, done.returncode) == ("SIGTERM\n", -signal.SIGTERM), done.stderr


def test_the_scripts_own_handler_wins() -> None:
    done = run(
        "signal.signal(signal.SIGTERM, lambda *_: print('mine', flush=True))\npreemption.listen()\n"
        "os.kill(os.getpid(), signal.SIGTERM)\nprint(preemption.is_listening(), preemption.next_notice(0))\n"
    )
    assert done.stdout == "mine\nFalse None\n", done.stderr


def test_after_training_sigterm_ends_as_ever() -> None:
    done = run("preemption.listen()\npreemption.stop_listening()\nos.kill(os.getpid(), signal.SIGTERM)\n")
    assert done.returncode == -signal.SIGTERM


def test_a_forked_process_is_ended_by_its_first_sigterm() -> None:
    done = run(
        "import multiprocessing, time\npreemption.listen()\ncontext = multiprocessing.get_context('fork')\n"
        "ready = context.Event()\n"
        "child = context.Process(target=lambda: (ready.set(), time.sleep(600)))\n"
        "child.start()\nready.wait(60)\nchild.terminate()\nchild.join(60)\nprint(child.exitcode)\n"
    )
    assert done.stdout == "-15\n", done.stderr
