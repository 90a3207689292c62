"""One job from its first allocation to its last process, with agents, and workers that know no torch."""

import contextlib
import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from edt_launch.agent.system.processes import command_line
from edt_launch.cluster.allocation import Allocation, HostSlots, parse, render
from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.errors import ExitCode, ResourceError, UsageError
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.run_dir import RunDir
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher import allocations, termination
from edt_launch.launcher.driver import launched_workers
from edt_launch.launcher.hosts import agents, host_agent
from edt_launch.launcher.plan import JobOutcome, Plan
from edt_launch.launcher.programs.script import Script
from edt_launch.launcher.runs import job
from no_files import KINDS, put
from recorder import Recorder
from started import gone, started

FAKE = (sys.executable, "-S", str(Path(__file__).parents[1] / "fake_worker.py"))
TWO = Allocation(1, (HostSlots("localhost", 2),))


@pytest.fixture
def paths(tmp_path):
    return RunDir(tmp_path / 'it\'s an "output" folder')


def plan_of(paths, **changes):
    """A plan; what is no field of it is an option."""
    fields = {name: changes.pop(name) for name in ("limits", "allocation", "follow") if name in changes}
    defaults = {"limits": SizeLimits(1, 4), "allocation": None if "follow" in fields else TWO}
    return Plan(paths=paths, options=RunOptions(**changes), **(defaults | fields))


@pytest.fixture
def run(paths):
    """Runs the fake's function of that name; returns the outcome and what was shown."""

    def run(name, reaction=lambda text, signals: None, **changes):
        signals = []
        view = Recorder(lambda text: reaction(text, signals))
        return job.run(Script([*FAKE, name]), plan_of(paths, **changes), view, signals), view

    return run


def events_in(paths):
    return [json.loads(line) for line in paths.events.read_text().splitlines()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["events.jsonl", "run/lock"])
def test_what_is_no_file_in_the_output_directory_is_named(run, paths, kind, name):
    path = paths.root / name
    path.parent.mkdir(parents=True)
    put(kind, path)
    with pytest.raises(UsageError, match=r"--output-dir .*: it is no file; "):
        run("success")


def test_a_full_disk_is_no_mistake_in_the_options(run, paths, monkeypatch):
    def write(path, text):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(job, "write_atomically", write)
        with pytest.raises(ResourceError, match="No space left on device; make room"):
            run("success")
    monkeypatch.setattr(allocations, "write_atomically", write)
    outcome, _ = run("success")
    assert outcome.exit_code == ExitCode.OUT_OF_RESOURCES
    assert "No space left on device" in outcome.message
    assert events_in(paths)[-1]["exit_code"] == ExitCode.OUT_OF_RESOURCES


def test_success(run, paths, tmp_path, monkeypatch):
    monkeypatch.setenv("HOROVOD_RANK", "7")
    monkeypatch.setenv("MINE", "own")
    (paths.checkpoint / "step-00000042").mkdir(parents=True)
    followed = tmp_path / "allocation"
    write_atomically(followed, render(TWO))
    outcome, view = run("success", follow=followed, start_timeout=0.0, verbose=True)
    assert outcome == JobOutcome(ExitCode.SUCCESS)
    shown = [(label, text) for label, _, text in view.lines if label != "edt-launch"]
    assert sorted(shown) == [("0", '[null, "own"]'), ("0", r"\xff"), ("0", "hello"), ("1", "oh")]
    assert any(label == "edt-launch" and "Start(worker=" in text for label, _, text in view.lines)
    assert view.messages[0].startswith(f"found checkpoints in {paths.checkpoint} to go on from; ")
    assert view.status.step == 10
    assert paths.rank_log("1").read_text() == "oh\n"
    assert "Assign(generation=1" in paths.own_log.read_text()
    assert parse(paths.allocation.read_text()) == TWO
    names = [event["event"] for event in events_in(paths)]
    assert names[:4] == ["begun", "allocation_accepted", "launched", "desired"]
    assert names[-2:] == ["finished", "ended"]


def test_a_job_whose_agent_is_killed_is_started_again_as_often_as_it_may(run, paths):
    def react(text, signals):
        for process in psutil.Process().children():
            if "edt_launch.agent" in command_line(process):  # not what another test has left running
                process.kill()

    outcome, view = run("waiting", react, max_restarts=1)
    assert outcome.exit_code == ExitCode.JOB_FAILED
    assert outcome.message.startswith("edt-launch: the job failed after 1 restart")
    assert "the agent of this host was killed by signal 9" in outcome.message
    assert any(message.startswith("restarting the job, 1 of 1 times") for message in view.messages)
    workers = [event["worker"] for event in events_in(paths) if event["event"] == "started"]
    released = [event["worker"] for event in events_in(paths) if event["event"] == "released"]
    assert workers == sorted(released) == [0, 1, 2, 3]
    assert not view.status.resizes


@pytest.mark.parametrize("where", [(agents.Agents, "start"), (host_agent.HostAgent, "_take")])
def test_a_mistake_of_ours_is_no_hang(run, monkeypatch, where):
    monkeypatch.setattr(launched_workers, "END_GRACE", 0.1)
    monkeypatch.setattr(launched_workers, "KILL_GRACE", 0.1)
    monkeypatch.setattr(*where, lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("success", grace=0.1)


def test_two_signals_end_the_whole_tree(run, monkeypatch):
    monkeypatch.setattr(termination.Ending.decide, "__defaults__", (600.0,))  # however slow the machine is
    pids = []

    def react(text, signals):
        if text.startswith("ready"):
            pids.extend(map(int, text.split()[1:]))
            signals.extend([signal.SIGINT] * 2)

    outcome, view = run("stubborn", react)
    assert outcome.exit_code == ExitCode.INTERRUPTED
    assert any("had to be killed" in message for message in view.messages[1:])
    assert pids
    assert all(map(gone, pids))


def test_workers_that_start_leave_on_sigusr1_and_the_job_can_go_on(run, paths):
    (paths.checkpoint / "step-00000007").mkdir(parents=True)
    outcome, _ = run("slow_to_start", lambda text, signals: signals.append(signal.SIGUSR1))
    assert outcome.exit_code == ExitCode.LEFT
    assert outcome.message.endswith(f"start it again with --output-dir {paths.root} to go on")
    assert events_in(paths)[-1]["exit_code"] == ExitCode.LEFT
    assert not [event for event in events_in(paths) if event["event"] == "restarting"]


PROGRAM = """
import sys
from pathlib import Path
from edt_launch.launcher.runs import job
from edt_launch.cluster.allocation import Allocation, HostSlots
from edt_launch.cluster.follower import SizeLimits
from edt_launch.launcher.plan import Plan
from edt_launch.launcher.programs.script import Script
from edt_launch.core.run_dir import RunDir
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.view.view import PlainView
one = Allocation(1, (HostSlots("localhost", 1),))
plan = Plan(SizeLimits(1, 4), RunDir(Path(sys.argv[1])), one)
with job.received_signals() as signals:
    sys.exit(job.run(Script(sys.argv[2:]), plan, PlainView(sys.stdout, sys.stderr), signals).exit_code)
"""


@contextlib.contextmanager
def ready(name, paths):
    """A launcher that is killed at the end, and the processes of its job."""
    words = [sys.executable, "-c", PROGRAM, str(paths.root), *FAKE, name]
    with started(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as launcher:
        yield launcher, [int(word) for word in launcher.stdout.readline().split("ready ")[1].split()]


def test_signals_of_a_preemption_pause_the_job():
    before = signal.getsignal(signal.SIGUSR2)
    with job.received_signals({signal.SIGTERM, signal.SIGUSR2}) as received:
        for number in (signal.SIGUSR2, signal.SIGTERM, signal.SIGINT):
            signal.raise_signal(number)
    assert received == [signal.SIGUSR1, signal.SIGUSR1, signal.SIGINT]
    assert received.preempted_by == signal.SIGTERM
    assert signal.getsignal(signal.SIGUSR2) == before


def test_nothing_outlives_a_killed_launcher(paths):
    with ready("waiting", paths) as (launcher, pids):
        family = psutil.Process(launcher.pid).children(recursive=True)
        launcher.kill()
    assert pids[0] in {process.pid for process in family}
    assert psutil.wait_procs(family, timeout=60)[1] == []
