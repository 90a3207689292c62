"""Every process of a job is found and ended."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from edt_launch.agent.system.processes import JOB_VARIABLE, kill_job, marked, tree
from started import gone, started

# Starts a child in its own session that ignores SIGTERM, says its id, and waits or ends.
PARENT = """
import subprocess, sys, time
stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
if sys.argv[1] == "stays":
    time.sleep(600)
"""

# Makes a semaphore that only the resource tracker removes, says its name, and waits.
HOLDER = """
import multiprocessing, time
lock = multiprocessing.get_context("spawn").Lock()
print(lock._semlock.name, flush=True)
time.sleep(600)
"""


@pytest.fixture
def start():
    started = []

    def start(how, **environment):
        parent = subprocess.Popen(
            [sys.executable, "-c", PARENT, how], stdout=subprocess.PIPE, env=os.environ | environment
        )
        with parent.stdout:
            pids = {parent.pid, int(parent.stdout.readline())}
        started.append((parent, pids))
        return parent, pids

    yield start
    for parent, pids in started:
        parent.kill()
        parent.wait()
        for pid in pids:
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(pid).kill()


def ids(found):
    return {process.pid for process in found}


def test_descendants_in_sessions_of_their_own_are_found(start):
    parent, pids = start("stays")
    assert ids(tree(parent.pid)) == pids
    kill_job(parent.pid, "no such job", ())
    assert all(map(gone, pids))


def test_those_that_left_their_parents_are_found_by_their_mark(start):
    parent, pids = start("ends", **{JOB_VARIABLE: "this very job"})
    parent.wait()
    (child,) = pids - {parent.pid}
    assert ids(marked("this very job")) == {child}
    assert marked("another job") == set()
    assert kill_job(None, "this very job", ()) == 1
    assert gone(child)


@pytest.fixture
def holder():
    with started([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True) as process:
        yield process, Path("/dev/shm", "sem." + process.stdout.readline().strip().lstrip("/"))


def test_shared_memory_is_cleaned_up_behind_the_killed(holder):
    process, semaphore = holder
    family = tree(process.pid)
    assert len(family) == 2
    assert semaphore.exists()
    kill_job(process.pid, "no such job", ())
    assert not semaphore.exists()
    assert all(gone(member.pid) for member in family)


def test_a_process_whose_number_was_another_one_s_is_found_and_ended(start):
    _, pids = start("stays", **{JOB_VARIABLE: "reused number"})
    for seen in psutil.process_iter():
        if seen.pid in pids:
            seen._ident = (seen.pid, 0.0)  # as psutil remembers one that had this number and has ended
    assert kill_job(None, "reused number", ()) == 2
    assert all(map(gone, pids))
