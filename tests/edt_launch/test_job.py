"""One job from its first allocation to its last process, over a stand-in for horovodrun."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from edt_launch import job
from edt_launch.errors import ExitCode, StartError, StartTimeoutError, UsageError
from edt_launch.hosts.allocation import Allocation, HostSlots, parse, render, write_atomically
from edt_launch.hosts.follower import Limits
from edt_launch.hosts.network import HostChecker
from edt_launch.launcher import ending, events, supervise
from edt_launch.launcher.allocations import Allocations
from edt_launch.launcher.desk import Desk
from edt_launch.launcher.elastic import Elastic
from edt_launch.launcher.plan import Outcome, Plan, Wmla
from edt_launch.run_dir import RunDir
from edt_launch.wmla.frameworks import Framework
from recorder import Recorder

FAKE = (sys.executable, str(Path(__file__).with_name("fake_horovodrun.py")))
TWO = Allocation(1, (HostSlots("localhost", 2),))


@pytest.fixture
def paths(tmp_path):
    return RunDir(tmp_path / 'it\'s an "output" folder')


@pytest.fixture
def run(paths):
    """Runs the fake's function of that name; returns the outcome and what was shown."""

    def run(name, reaction=lambda text, signals: None, **changes):
        signals = []
        view = Recorder(lambda text: reaction(text, signals))
        plan = {"program": [name], "limits": Limits(1, 4), "paths": paths, "allocation": TWO, **changes}
        return job.run(Plan(**plan), view, signals, horovodrun=FAKE), view

    return run


def events_in(paths):
    return [json.loads(line) for line in paths.events.read_text().splitlines()]


def gone(pid):
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def test_success(run, paths, monkeypatch):
    monkeypatch.setenv("HOROVOD_RANK", "7")
    outcome, view = run("success", variables={"MINE": "own"})
    assert outcome == Outcome(ExitCode.SUCCESS)
    assert sorted(view.lines) == [("0", "stderr", "oh"), ("1", "stdout", "hello")]
    assert view.status.step == 10
    assert paths.rank_log("0").read_text() == "oh\n"
    assert "about itself\n" in paths.horovodrun_log.read_text()
    assert parse(paths.allocation.read_text()) == TWO
    options, rank, slots, mine = json.loads(paths.horovodrun_log.read_text().splitlines()[-1])
    assert options[:2] == ["--host-discovery-script", str(paths.discovery_script)]
    assert (rank, slots, mine) == (None, 2, "own")
    names = [event["event"] for event in events_in(paths)]
    assert names[:3] == ["begun", "allocation_accepted", "launched"]
    assert names[-2:] == ["finished", "ended"]


def test_the_first_failure_is_the_last_thing_said(run, paths):
    outcome, _ = run("failure", max_restarts=1)
    assert outcome.exit_code == ExitCode.JOB_FAILED
    lines = outcome.message.splitlines()
    assert lines[:2] == [
        "edt-launch: the job failed after 1 restart: rank 1 failed",
        "first failure: rank 1 on localhost, killed by SIGSEGV",
    ]
    assert lines[2:-1] == [f"  | line {number}" for number in range(10, 30)]
    assert lines[-1] == f"log: {paths.rank_log('1')}"


@pytest.mark.parametrize("wmla", [None, Wmla(Framework.GANG, Path())])
def test_a_script_for_plain_horovod_is_told_so_and_no_program_for_wmla(paths, wmla):
    plan = Plan(["strange"], Limits(1, 4), paths, allocation=TWO, wmla=wmla)
    checker = HostChecker()
    with paths.opened("--output-dir"):
        log = events.EventLog(paths.events, print)
        desk = Desk(plan, Recorder(), log)
        outcome = Elastic(plan, desk, Allocations(plan, desk, checker), checker, []).run(FAKE)
        desk.close()
        log.close()
    assert ("a script for plain Horovod" in outcome.message) == (wmla is None)
    assert "connectFullMesh failed" in outcome.message


def test_follows_the_file_and_reports_what_it_does_not_follow_once(run, paths, tmp_path):
    allocation = tmp_path / "their 'allocation'"
    allocation.write_text(render(TWO))
    four = render(Allocation(3, (HostSlots("localhost", 4),)))

    class Vandal(Recorder):
        """Spoils the file when the job runs, and mends it when that is reported."""

        def message(self, text):
            super().message(text)
            if "not followed" in text:
                write_atomically(allocation, four)

    view = Vandal(lambda text: allocation.write_text(four[:-5]))
    plan = Plan(["resize"], Limits(1, 4), paths, follow=allocation)
    assert job.run(plan, view, [], horovodrun=FAKE).exit_code == ExitCode.SUCCESS
    rejections = [event["reason"] for event in events_in(paths) if event["event"] == "allocation_rejected"]
    assert len(rejections) == 1
    assert "half written" in rejections[0]
    assert paths.allocation.read_text() == four
    assert view.messages[-2:] == ["allocation 3: 4 slots", "2 -> 4 workers, training paused for 0.25 s"]
    assert [(r.before, r.after, r.pause) for r in view.status.resizes] == [(2, 4, 0.25)]


def test_waits_for_a_first_allocation(run, tmp_path):
    with pytest.raises(StartTimeoutError, match="missing"):
        run("success", allocation=None, follow=tmp_path / "missing", start_timeout=0.1)


def test_looks_at_the_file_even_without_time_to_wait(run, tmp_path):
    path = tmp_path / "allocation"
    write_atomically(path, render(TWO))
    outcome, _ = run("success", allocation=None, follow=path, start_timeout=0.0)
    assert outcome.exit_code == ExitCode.SUCCESS


def test_ends_while_it_waits_for_a_first_allocation(paths, tmp_path):
    plan = Plan(["success"], Limits(1, 4), paths, follow=tmp_path / "missing")
    outcome = job.run(plan, Recorder(), [signal.SIGTERM], horovodrun=FAKE)
    assert outcome == Outcome(ExitCode.TERMINATED, "edt-launch: ended by SIGTERM")


def test_says_why_horovodrun_did_not_start(run, paths):
    outcome, _ = run("no_start")
    assert outcome.exit_code == ExitCode.NOT_STARTED
    assert "No module named 'horovod'" in outcome.message
    assert str(paths.horovodrun_log) in outcome.message


def test_a_horovodrun_that_is_not_there(paths):
    plan = Plan(["success"], Limits(1, 4), paths, TWO)
    with pytest.raises(StartError, match="cannot run /no/such/program"):
        job.run(plan, Recorder(), [], horovodrun=["/no/such/program"])


def test_an_unknown_host_is_a_usage_error(run):
    with pytest.raises(UsageError, match=r"unknown host 'no-such-host\.invalid'"):
        run("success", allocation=Allocation(1, (HostSlots("no-such-host.invalid", 1),)))


class Elsewhere:
    """Finds every host, on another machine."""

    def __call__(self, host):
        return None

    def choose(self, named, hosts):
        return "eth9"

    def is_remote(self, host):
        return True


def test_a_directory_that_other_hosts_cannot_enter_is_a_usage_error(run, tmp_path, monkeypatch):
    folder = tmp_path / "a b"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(job, "HostChecker", Elsewhere)
    with pytest.raises(UsageError, match="a directory with a plain name"):
        run("success")


def test_a_killed_horovodrun_is_started_again_as_often_as_it_may(run, paths):
    outcome, view = run("murdered", max_restarts=2)
    assert outcome.exit_code == ExitCode.JOB_FAILED
    assert "after 2 restarts: horovodrun was killed by SIGKILL" in outcome.message
    told = "restarting the job, 1 of 2 times: horovodrun was killed by SIGKILL"
    assert any(message.startswith(told) for message in view.messages)
    workers = [event["worker"] for event in events_in(paths) if event["event"] == "started"]
    assert workers == [0, 1, 2, 3, 4, 5]
    assert view.status.resizes == ()


def test_a_horovodrun_that_is_killed_while_it_starts_workers_again_is_started_once_more(run):
    outcome, view = run("unlucky")
    assert outcome == job.Outcome(ExitCode.SUCCESS)
    assert len([message for message in view.messages if message.startswith("restarting")]) == 2
    outcome, _ = run("unlucky", max_restarts=1)
    assert outcome.exit_code == ExitCode.JOB_FAILED
    assert "after 1 restart: horovodrun was killed by SIGKILL" in outcome.message


def test_a_job_that_is_to_end_is_not_started_again(run):
    outcome, view = run("murdered", lambda text, signals: signals.append(signal.SIGTERM), max_restarts=2)
    assert outcome.exit_code == ExitCode.TERMINATED
    assert not any("restarting" in message for message in view.messages)


def test_a_job_succeeds_after_a_restart(run, paths):
    outcome, view = run("recovering")
    assert outcome == Outcome(ExitCode.SUCCESS)
    assert [event["step"] for event in events_in(paths) if event["event"] == "progress"] == [5, 6]
    assert view.status.step == 6
    (restarting,) = (event for event in events_in(paths) if event["event"] == "restarting")
    assert restarting["has_checkpoint"] is False
    assert any(message.endswith("; without a checkpoint, so from the beginning") for message in view.messages)


def test_what_horovod_says_of_lost_peers_is_logged_and_shown_on_demand(run, paths):
    _, view = run("bereft")
    assert view.lines == [("1", "stderr", "ours")]
    assert "Connection closed by peer" in paths.rank_log("1").read_text()
    _, view = run("bereft", verbose=True)
    assert len(view.lines) == 2


def test_says_where_it_looks_for_checkpoints(run, paths):
    (paths.checkpoint / "step-00000042").mkdir(parents=True)
    _, view = run("success")
    assert view.messages[0] == (
        f"found checkpoints in {paths.checkpoint} to go on from; for a new training name another --output-dir"
    )
    assert not any("going on from step" in message for message in view.messages)


def test_nonsense_from_horovodrun_is_logged_and_does_no_harm(run, paths):
    outcome, view = run("nonsense")
    assert outcome.exit_code == ExitCode.SUCCESS
    assert "not an event: this is no event" in paths.horovodrun_log.read_text()
    assert view.lines == [("1", "stdout", "\N{REPLACEMENT CHARACTER}")]


def test_horovodruns_own_lines_are_shown_on_demand(run):
    _, view = run("success", verbose=True)
    assert ("horovodrun", "stderr", "about itself") in view.lines


@pytest.mark.parametrize("name, numbers", [("obedient", [signal.SIGTERM]), ("stubborn", [signal.SIGINT] * 2)])
def test_a_signal_ends_the_whole_tree(run, name, numbers):
    pids = []

    def react(text, signals):
        pids.extend(map(int, text.split()[1:]))
        signals.extend(numbers)

    outcome, view = run(name, react)
    assert outcome.exit_code == 128 + numbers[0]
    assert any("killed" in message for message in view.messages[1:]) == (name == "stubborn")
    assert len(pids) == 2
    assert all(map(gone, pids))


def test_who_does_not_end_within_the_grace_is_killed(run, monkeypatch):
    monkeypatch.setattr(ending.Ending.decide, "__defaults__", (0.0,))
    pids = []

    def react(text, signals):
        pids.extend(map(int, text.split()[1:]))
        signals.append(signal.SIGTERM)

    outcome, _ = run("stubborn", react)
    assert outcome.exit_code == ExitCode.TERMINATED
    assert all(map(gone, pids))


@pytest.mark.parametrize("name", ["leaving", "slow_to_start"])
def test_workers_leave_on_sigusr1_and_the_job_can_go_on(run, paths, name):
    (paths.checkpoint / "step-00000007").mkdir(parents=True)
    outcome, _ = run(name, lambda text, signals: signals.append(signal.SIGUSR1))
    assert outcome.exit_code == ExitCode.LEFT
    assert outcome.message.endswith(f"start it again with --output-dir {paths.root} to go on")
    assert events_in(paths)[-1]["exit_code"] == ExitCode.LEFT
    assert not [event for event in events_in(paths) if event["event"] == "restarting"]


def test_a_job_that_waits_for_its_allocation_can_be_told_to_pause(paths, tmp_path):
    plan = Plan(["success"], Limits(1, 4), paths, follow=tmp_path / "missing")
    outcome = job.run(plan, Recorder(), [signal.SIGUSR1], horovodrun=FAKE)
    assert outcome == Outcome(
        ExitCode.LEFT,
        "edt-launch: all workers have left; there is no checkpoint: started again, the job begins anew",
    )


def test_who_runs_the_job_and_how_it_ended_is_written_down(run, paths):
    run("no_start")
    launcher = json.loads(paths.launcher.read_text())
    assert launcher["pid"] == os.getpid()
    assert launcher["started"] == psutil.Process().create_time()
    begun, *_, ended = events_in(paths)
    assert begun["event"] == "begun"
    assert {name: begun[name] for name in launcher} == launcher == {**launcher, "min_np": 1, "max_np": 4}
    assert (ended["event"], ended["exit_code"]) == ("ended", ExitCode.NOT_STARTED)
    assert "No module named 'horovod'" in ended["message"]


def test_what_is_left_behind_is_killed(run, monkeypatch):
    monkeypatch.setattr(supervise, "LEFTOVER_GRACE", 0.1)
    pids = []
    outcome, view = run("litter", lambda text, signals: pids.append(int(text.split()[1])))
    assert outcome.exit_code == ExitCode.SUCCESS
    assert all(map(gone, pids))
    assert "left behind" in view.messages[-1]


def test_a_mistake_of_ours_leaves_nothing_either(run):
    pids = []

    def react(text, signals):
        pids.extend(map(int, text.split()[1:]))
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run("stubborn", react)
    assert len(pids) == 2
    assert all(map(gone, pids))


PROGRAM = """
import sys
from pathlib import Path
from edt_launch import job
from edt_launch.hosts.allocation import Allocation, HostSlots
from edt_launch.hosts.follower import Limits
from edt_launch.launcher.plan import Plan
from edt_launch.run_dir import RunDir
from edt_launch.view.view import PlainView
two = Allocation(1, (HostSlots("localhost", 2),))
plan = Plan([sys.argv[1]], Limits(1, 4), RunDir(Path(sys.argv[2])), two)
with job.received_signals() as signals:
    sys.exit(job.run(plan, PlainView(sys.stdout, sys.stderr), signals, sys.argv[3:]).exit_code)
"""


def start(name, paths):
    words = [sys.executable, "-c", PROGRAM, name, str(paths.root), *FAKE]
    launcher = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return launcher, [int(word) for word in launcher.stdout.readline().split("ready ")[1].split()]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_real_signals(paths, number):
    launcher, pids = start("obedient", paths)
    with launcher:
        launcher.send_signal(number)
        assert launcher.wait() == 128 + number
    assert all(map(gone, pids))


def test_horovodrun_notices_when_the_launcher_is_killed(paths):
    launcher, pids = start("orphaned", paths)
    with launcher:
        launcher.kill()
    horovodrun = psutil.Process(pids[0]) if psutil.pid_exists(pids[0]) else None
    if horovodrun is not None:
        assert psutil.wait_procs([horovodrun], timeout=60)[1] == []
