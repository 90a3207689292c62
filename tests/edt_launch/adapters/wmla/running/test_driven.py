"""A driver that has workers started, which know no torch."""

import json
import signal
import sys
from pathlib import Path

import pytest

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.kind import WmlaProgram
from edt_launch.adapters.wmla.running.layout import ResultDir
from edt_launch.cluster.allocation import Allocation, HostSlots
from edt_launch.cluster.follower import SizeLimits
from edt_launch.core.errors import ExitCode
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.plan import JobOutcome, Plan
from edt_launch.launcher.runs import job
from recorder import Recorder
from started import gone

TESTS = Path(__file__).parents[4]
FAKE = (sys.executable, "-S", str(TESTS / "edt_launch" / "launcher" / "fake_worker.py"))
MODEL = TESTS / "system" / "programs" / "wmla model"
TWO = Allocation(1, (HostSlots("localhost", 2),))
FOUR = Allocation(1, (HostSlots("localhost", 4),))


@pytest.fixture
def result(tmp_path):
    return ResultDir(tmp_path / "it's a result")


def program(words, script=""):
    return WmlaProgram(words, Framework.ELASTIC, MODEL, script)


@pytest.fixture
def run(result):
    """Has the driver do these acts, see the program; returns the outcome and what was shown."""

    def run(*acts, reaction=lambda text, signals: None, signals=(), script="", **changes):
        signals = list(signals)
        view = Recorder(lambda text: reaction(text, signals))
        words = [sys.executable, "main.py", json.dumps(acts)]
        fields = {name: changes.pop(name) for name in ("limits", "allocation", "follow") if name in changes}
        plan = {"limits": SizeLimits(1, 4), "paths": result, "allocation": TWO, **fields}
        return job.run(
            program(words, script), Plan(**plan, options=RunOptions(**changes)), view, signals
        ), view

    return run


def train(name, number=1, most=16):
    return {"train": {"number": number, "program": [*FAKE, name], "max_workers": most}}


def events(result, *kinds):
    found = [json.loads(line) for line in result.events.read_text().splitlines()]
    return [event for event in found if not kinds or event["event"] in kinds]


def said(view, label="driver"):
    return [text for whose, _, text in view.lines if whose == label]


def test_the_driver_runs_its_script_to_the_end_and_workers_train(run, result):
    acts = [{"print": "[0]<stdout>:mine"}, train("success"), {"answer": "check"}, {"print": "after"}]
    outcome, view = run(*acts)
    assert outcome == JobOutcome(ExitCode.SUCCESS)
    told = ["[0]<stdout>:mine", 'ended {"exit_code": 0, "message": ""}', "after"]
    assert said(view) == told
    assert said(view, "0")[-1] == "hello"
    assert result.rank_log("driver").read_text().splitlines() == told
    (driver,) = events(result, "driver")
    assert result.printed(driver["id"], "stdout").read_text().splitlines() == told
    assert result.printed(driver["id"], "stderr").read_text() == ""
    names = [event["event"] for event in events(result)]
    assert (names.count("begun"), names.count("ended"), names[-1]) == (1, 1, "ended")


@pytest.mark.parametrize("training", [(), (train("success"), {"answer": "check"})], ids=["none", "another"])
def test_agents_start_with_the_driver_and_end_if_it_has_no_use_for_them(run, result, training):
    outcome, _ = run({"wait_for": str(result.log / "warm.localhost.log")}, *training, script="main.py")
    assert outcome == JobOutcome(ExitCode.SUCCESS)
    assert len(events(result, "agent", "launched")) == len(training[:1])


def test_the_driver_has_no_device_a_log_folder_and_the_workers_order_of_sets(run, monkeypatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    _, view = run({"show": ["CUDA_VISIBLE_DEVICES", "LOG_DIR", "PYTHONHASHSEED"]})
    found = json.loads(said(view)[0])
    assert Path(found["LOG_DIR"]).is_dir()
    assert (found["CUDA_VISIBLE_DEVICES"], found["PYTHONHASHSEED"]) == ("", "0")


def test_a_script_that_trains_nothing_decides_by_its_exit_code(run, result):
    outcome, _ = run({"print": "last words"}, {"exit": 2})
    assert outcome.exit_code == ExitCode.JOB_FAILED
    assert outcome.message.splitlines() == [
        "edt-launch: the job failed: its driver ended with exit code 2",
        "  | last words",
        f"log: {result.rank_log('driver')}",
    ]


def test_a_failed_training_is_the_first_failure_and_the_driver_is_told(run, result):
    outcome, view = run(train("failure"), {"answer": "check"}, max_restarts=0)
    assert outcome.exit_code == ExitCode.JOB_FAILED
    lines = outcome.message.splitlines()
    assert lines[1] == "first failure: rank 0 on localhost, killed by SIGSEGV"
    assert lines[-1] == f"the driver then ended with exit code 1: {result.rank_log('driver')}"
    told = json.loads(said(view)[0].removeprefix("ended "))
    assert told["exit_code"] == 1
    assert told["message"].startswith("the job failed: rank 0 on localhost failed")


def test_the_driver_gets_what_its_executors_have_told_before_they_failed(run):
    _, view = run(train("telling"), {"answer": ""}, max_restarts=0)
    told = said(view)
    assert told[0] == "2000 messages"
    assert told[1].startswith('ended {"exit_code": 1')


def test_workers_end_when_the_driver_does(run, tmp_path):
    ready = tmp_path / "ready"
    pids = []

    def react(text, signals):
        if text.startswith("ready"):
            pids.extend(map(int, text.split()[1:]))
            ready.touch()

    outcome, view = run(train("waiting"), {"wait_for": str(ready)}, {"exit": 3}, reaction=react)
    assert outcome.exit_code == ExitCode.JOB_FAILED
    head = "its driver ended with exit code 3 in the middle of training"
    assert outcome.message.startswith(f"edt-launch: the job failed: {head}")
    assert pids
    assert all(map(gone, pids))
    assert any("in the middle of training" in message for message in view.messages)


def test_what_the_driver_leaves_behind_is_killed(run, tmp_path):
    child = tmp_path / "child"
    outcome, view = run({"child": str(child)})
    assert outcome == JobOutcome(ExitCode.SUCCESS)
    assert gone(int(child.read_text()))
    assert "left behind" in view.messages[-1]


def test_a_driver_that_says_what_nobody_understands_is_ended(run):
    outcome, _ = run({"ask": {"type": "dance"}}, {"wait_for": "/no/such/file"})
    assert outcome.exit_code == ExitCode.JOB_FAILED
    assert "its type 'dance' is unknown" in outcome.message
    assert "edt_hvd alone may write to its socket" in outcome.message


# Signals, in every phase.

FOREVER = {"wait_for": "/no/such/file"}
READY = {"print": "ready"}
PHASES = {
    "before training": [READY, FOREVER],
    "in training": [train("waiting"), FOREVER],
    "after training": [train("success"), {"answer": "check"}, READY, FOREVER],
}


@pytest.mark.parametrize(
    "phase, number", list(zip(PHASES, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP), strict=True))
)
def test_a_signal_ends_driver_and_workers(run, result, phase, number):
    def react(text, signals):
        if text.startswith("ready"):
            signals.append(number)

    outcome, _ = run(*PHASES[phase], reaction=react)
    assert outcome.exit_code == 128 + number
    (driver,) = events(result, "driver")
    assert gone(driver["pid"])


def test_a_pause_outside_of_training_ends_the_driver(run):
    def react(text, signals):
        if text == "ready":
            signals.append(signal.SIGUSR1)

    outcome, _ = run(*PHASES["after training"], reaction=react)
    assert outcome.exit_code == ExitCode.LEFT
    assert "start it again with --result-dir" in outcome.message


def test_a_pause_in_training_has_the_workers_leave_and_then_ends_the_driver(run, result):
    acts = (train("waiting"), {"answer": "check"}, FOREVER)
    outcome, view = run(*acts, reaction=lambda _, signals: signals.append(signal.SIGUSR1))
    assert outcome.exit_code == ExitCode.LEFT
    assert outcome.message.startswith("edt-launch: all workers have left")
    assert not said(view)
    assert gone(events(result, "driver")[0]["pid"])


# How many workers.


def test_a_limit_counts_while_it_trains_and_the_next_training_has_its_own(run, result, tmp_path):
    ready = tmp_path / "ready"

    def react(text, signals):
        if text == "ready":
            ready.touch()

    limit = {"ask": {"type": "limit", "max_workers": 2}}
    outcome, _ = run(
        *(train("shrunk"), {"wait_for": str(ready)}, limit, {"answer": "check"}),
        *(limit, train("success", 2), {"answer": "check"}),
        reaction=react,
        allocation=FOUR,
    )
    assert outcome == JobOutcome(ExitCode.SUCCESS)
    assert [event["max_workers"] for event in events(result, "usable")] == [2, 4]
