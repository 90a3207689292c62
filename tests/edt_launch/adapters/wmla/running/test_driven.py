"""A driver that has workers started, which know no torch."""

import json
import re
import signal
import sys
from pathlib import Path

import pytest

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.kind import WmlaProgram
from edt_launch.adapters.wmla.running.layout import ResultDir
from edt_launch.cluster.allocation import Allocation, HostSlots, parse, render
from edt_launch.cluster.follower import Limits
from edt_launch.core.atomic import write_atomically
from edt_launch.core.errors import ExitCode, StartError, UsageError
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher import job, termination
from edt_launch.launcher.plan import Outcome, Plan
from recorder import Recorder
from started import gone

TESTS = Path(__file__).parents[4]
FAKE = (sys.executable, "-S", str(TESTS / "edt_launch" / "launcher" / "fake_worker.py"))
MODEL = TESTS / "system" / "programs" / "wmla model"
ONE = Allocation(1, (HostSlots("localhost", 1),))
TWO = Allocation(1, (HostSlots("localhost", 2),))
FOUR = Allocation(1, (HostSlots("localhost", 4),))


@pytest.fixture
def result(tmp_path):
    return ResultDir(tmp_path / "it's a result")


def program(words):
    return WmlaProgram(words, Framework.ELASTIC, MODEL)


@pytest.fixture
def run(result):
    """Has the driver do these acts, see the program; returns the outcome and what was shown."""

    def run(*acts, reaction=lambda text, signals: None, signals=(), **changes):
        signals = list(signals)
        view = Recorder(lambda text: reaction(text, signals))
        words = [sys.executable, "main.py", json.dumps(acts)]
        fields = {name: changes.pop(name) for name in ("limits", "allocation", "follow") if name in changes}
        plan = {"limits": Limits(1, 4), "paths": result, "allocation": TWO, **fields}
        return job.run(program(words), Plan(**plan, options=RunOptions(**changes)), view, signals), view

    return run


def train(name, number=1, most=16):
    return {"train": {"number": number, "program": [*FAKE, name], "max_workers": most}}


def events(result, *kinds):
    found = [json.loads(line) for line in result.events.read_text().splitlines()]
    return [event for event in found if not kinds or event["event"] in kinds]


def said(view, label="driver"):
    return [text for whose, _, text in view.lines if whose == label]


def test_the_driver_runs_its_script_to_the_end_and_workers_train(run, result):
    outcome, view = run({"print": "before"}, train("success"), {"answer": "check"}, {"print": "after"})
    assert outcome == Outcome(ExitCode.SUCCESS)
    told = ["before", 'ended {"exit_code": 0, "message": ""}', "after"]
    assert said(view) == told
    assert said(view, "0")[-1] == "hello"
    assert result.rank_log("driver").read_text().splitlines() == told
    (driver,) = events(result, "driver")
    assert result.printed(driver["id"], "stdout").read_text().splitlines() == told
    assert result.printed(driver["id"], "stderr").read_text() == ""
    names = [event["event"] for event in events(result)]
    assert (names.count("begun"), names.count("ended"), names[-1]) == (1, 1, "ended")


def test_what_the_driver_prints_is_kept_as_it_is(run, result):
    _, view = run({"print": "[0]<stdout>:mine"}, {"write": "10 %\r20 %\r"}, {"print": "done"})
    assert said(view)[0] == "[0]<stdout>:mine"
    (driver,) = events(result, "driver")
    text = result.printed(driver["id"], "stdout").read_bytes()
    assert text == b"[0]<stdout>:mine\n10 %\r20 %\rdone\n"


def test_workers_of_later_trainings_have_other_numbers_and_checkpoints(run, result):
    acts = [act for number in (1, 2) for act in (train("where", number), {"answer": "check"})]
    _, view = run(*acts)
    first, second = (json.loads(text) for text in said(view, "0"))
    work = str(result.code / "wmla model")
    common = {"EDT_WMLA_LAUNCHER": None, "RESULT_DIR": str(result.root)}
    assert first == [
        work,
        common | {"EDT_WORKER": "0", "EDT_CHECKPOINT_DIR": str(result.checkpoint)},
    ]
    assert second == [
        work,
        common | {"EDT_WORKER": "2", "EDT_CHECKPOINT_DIR": str(result.checkpoint / "training-2")},
    ]


def test_the_driver_has_no_device_and_folders_of_its_own(run, result):
    names = ["CUDA_VISIBLE_DEVICES", "LOG_DIR", "EDT_LOGS"]
    _, view = run({"show": names})
    found = json.loads(said(view)[0])
    assert found["CUDA_VISIBLE_DEVICES"] == ""
    assert Path(found["LOG_DIR"]).is_dir()
    assert found["EDT_LOGS"] == str(result.log)


@pytest.mark.parametrize("given, found", [(None, "0"), ("random", "random")])
def test_the_driver_has_sets_of_strings_in_the_workers_order(run, monkeypatch, given, found):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if given is not None:
        monkeypatch.setenv("PYTHONHASHSEED", given)
    _, view = run({"show": ["PYTHONHASHSEED"]})
    assert json.loads(said(view)[0]) == {"PYTHONHASHSEED": found}


@pytest.mark.parametrize("code, expected", [(0, ExitCode.SUCCESS), (2, ExitCode.JOB_FAILED)])
def test_a_script_that_trains_nothing_decides_by_its_exit_code(run, result, code, expected):
    outcome, _ = run({"print": "last words"}, {"exit": code})
    assert outcome.exit_code == expected
    if code:
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


@pytest.mark.parametrize("name", ["unwilling", "half_hearted"])
@pytest.mark.parametrize("allocation", [ONE, TWO])
def test_executors_that_end_well_before_the_training_is_done_have_failed(run, name, allocation):
    outcome, view = run(train(name), {"answer": "check"}, allocation=allocation, max_restarts=0)
    assert outcome.exit_code == ExitCode.JOB_FAILED
    told = json.loads(said(view)[0].removeprefix("ended "))
    assert told["exit_code"] == 1
    reason = r"rank \d on localhost exited with code 0 before the training was done"
    for message in (outcome.message, told["message"]):
        assert re.search(reason, message)


def test_a_script_may_go_on_after_a_failed_training(run):
    outcome, view = run(train("failure"), {"answer": "ignore"}, {"print": "on"}, max_restarts=0)
    assert outcome == Outcome(ExitCode.SUCCESS)
    assert said(view)[-1] == "on"


def test_what_keeps_a_training_from_its_start_is_told_to_the_driver(run, tmp_path):
    changes = {"allocation": None, "follow": tmp_path / "missing", "start_timeout": 0.1}
    outcome, view = run(train("success"), {"answer": "check"}, **changes)
    assert outcome.exit_code == ExitCode.JOB_FAILED
    assert "missing" in outcome.message
    assert json.loads(said(view)[0].removeprefix("ended "))["exit_code"] == ExitCode.NOT_STARTED


def test_an_unknown_host_is_a_usage_error(run):
    with pytest.raises(UsageError, match="nowhere"):
        run({"wait_for": "/no/such/file"}, allocation=Allocation(1, (HostSlots("nowhere.invalid", 1),)))


def test_a_driver_that_cannot_be_run_is_a_start_error(result):
    with pytest.raises(StartError, match="cannot run /no/such/python"):
        job.run(program(["/no/such/python"]), Plan(Limits(1, 4), result, FOUR), Recorder(), [])


@pytest.mark.parametrize("code", [0, 3])
def test_workers_end_when_the_driver_does(run, result, tmp_path, code):
    ready = tmp_path / "ready"
    pids = []

    def react(text, signals):
        if text.startswith("ready"):
            pids.extend(map(int, text.split()[1:]))
            ready.touch()

    outcome, view = run(train("waiting"), {"wait_for": str(ready)}, {"exit": code}, reaction=react)
    assert outcome.exit_code == ExitCode.JOB_FAILED
    head = f"its driver ended with exit code {code} in the middle of training"
    assert outcome.message.startswith(f"edt-launch: the job failed: {head}")
    assert pids
    assert all(map(gone, pids))
    assert any("in the middle of training" in message for message in view.messages)


def test_what_the_driver_leaves_behind_is_killed(run, tmp_path):
    child = tmp_path / "child"
    outcome, view = run({"child": str(child)})
    assert outcome == Outcome(ExitCode.SUCCESS)
    assert gone(int(child.read_text()))
    assert "left behind" in view.messages[-1]


@pytest.mark.parametrize(
    "message, reason",
    [
        ({"type": "dance"}, "its type 'dance' is unknown"),
        ({"type": "train", "number": 1, "program": [], "max_workers": 1}, "program: list, expected 1 to"),
    ],
)
def test_a_driver_that_says_what_nobody_understands_is_ended(run, message, reason):
    outcome, _ = run({"ask": message}, {"wait_for": "/no/such/file"})
    assert outcome.exit_code == ExitCode.JOB_FAILED
    assert reason in outcome.message
    assert "edt_hvd alone may write to its socket" in outcome.message


# Signals, in every phase.

FOREVER = {"wait_for": "/no/such/file"}
READY = {"print": "ready"}
PHASES = {
    "before training": [READY, FOREVER],
    "in training": [train("waiting"), FOREVER],
    "after training": [train("success"), {"answer": "check"}, READY, FOREVER],
}


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_driver_and_workers(run, result, phase, number):
    def react(text, signals):
        if text.startswith("ready"):
            signals.append(number)

    outcome, _ = run(*PHASES[phase], reaction=react)
    assert outcome.exit_code == 128 + number
    (driver,) = events(result, "driver")
    assert gone(driver["pid"])


@pytest.mark.parametrize("phase", ["before training", "after training"])
def test_a_pause_outside_of_training_ends_the_driver(run, phase):
    def react(text, signals):
        if text == "ready":
            signals.append(signal.SIGUSR1)

    outcome, _ = run(*PHASES[phase], reaction=react)
    assert outcome.exit_code == ExitCode.LEFT
    assert "start it again with --result-dir" in outcome.message


def test_a_pause_in_training_has_the_workers_leave_and_then_ends_the_driver(run, result):
    outcome, view = run(
        train("waiting"),
        {"answer": "check"},
        FOREVER,
        reaction=lambda _, signals: signals.append(signal.SIGUSR1),
    )
    assert outcome.exit_code == ExitCode.LEFT
    assert outcome.message.startswith("edt-launch: all workers have left")
    assert not said(view)
    assert gone(events(result, "driver")[0]["pid"])


def test_a_driver_that_does_not_listen_is_killed(run, result, monkeypatch):
    monkeypatch.setattr(termination.Ending.decide, "__defaults__", (0.0,))
    outcome, view = run(
        {"ignore": None}, READY, FOREVER, reaction=lambda _, signals: signals.append(signal.SIGTERM)
    )
    assert outcome.exit_code == ExitCode.TERMINATED
    assert "1 process had to be killed" in view.messages


def test_a_driver_that_ends_well_when_it_is_told_to_pause_has_succeeded(run, tmp_path):
    told = tmp_path / "told"

    def react(text, signals):
        if text == "ready":
            signals.append(signal.SIGUSR1)
            told.touch()

    outcome, _ = run({"ignore": None}, READY, {"wait_for": str(told)}, reaction=react)
    assert outcome.exit_code == ExitCode.SUCCESS


# How many workers.


def test_a_training_has_no_more_slots_than_it_can_use(run, result):
    outcome, view = run(train("shrunk", most=2), {"answer": "check"}, allocation=FOUR)
    assert outcome == Outcome(ExitCode.SUCCESS)
    assert [event["max_workers"] for event in events(result, "usable")] == [2]
    assert parse(result.allocation.read_text()) == Allocation(1, (HostSlots("localhost", 2),))
    assert "the program can use 2 workers at most" in view.messages


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
    assert outcome == Outcome(ExitCode.SUCCESS)
    assert [event["max_workers"] for event in events(result, "usable")] == [2, 4]


def test_a_training_that_can_use_fewer_workers_than_the_job_needs_has_those(run, result):
    outcome, _ = run(train("success", most=1), {"answer": "check"}, limits=Limits(2, 4))
    assert outcome == Outcome(ExitCode.SUCCESS)
    assert [event["size"] for event in events(result, "world")] == [1]


def test_the_allocation_is_followed_while_there_are_no_workers(run, result, tmp_path):
    allocation = tmp_path / "allocation"
    write_atomically(allocation, render(FOUR))
    done = tmp_path / "done"

    class Watcher(Recorder):
        def refresh(self, now, status):
            told = [event["generation"] for event in events(result, "following")]
            if told == [1]:
                write_atomically(allocation, render(Allocation(2, (HostSlots("localhost", 1),))))
            elif told == [1, 2]:
                done.touch()

    words = [sys.executable, "main.py", json.dumps([{"wait_for": str(done)}])]
    plan = Plan(Limits(1, 4), result, follow=allocation)
    assert job.run(program(words), plan, Watcher(), []) == Outcome(ExitCode.SUCCESS)


def test_a_job_that_goes_on_keeps_its_names(run, result):
    run()
    run()
    first, second = events(result, "driver")
    assert first["id"] == second["id"]
