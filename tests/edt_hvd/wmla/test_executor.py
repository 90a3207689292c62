"""Executors as processes: what a script does there before, at and after its `train`."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from edt_hvd.wmla import executing
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.executor import main
from edt_hvd.wmla.random_states import RandomStates
from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training_dir import Start, TrainingDir
from tiers import full

SCRIPT = """
import atexit, random, sys, torch
from edt_hvd.wmla import FabricModel

print("drawn", random.random(), sys.argv[1:], flush=True)
atexit.register(print, "registered for the end", flush=True)
model = torch.nn.Linear(2, 2)
samples = [(torch.ones(2), index % 2) for index in range(8)]
loss = torch.nn.CrossEntropyLoss()
program = FabricModel(model, lambda: (samples, None), loss, torch.optim.SGD(model.parameters(), 0.1))
"""


class Job:
    """A folder of a job in which executors are started."""

    def __init__(self, folder: Path) -> None:
        self.script, self.result = folder / "main.py", folder / "result"
        self.log = self.result / "log" / "one"
        self.log.mkdir(parents=True)
        self.states = RandomStates.now()

    def run(self, text: str, number: int = 1) -> subprocess.CompletedProcess[str]:
        self.script.write_text(SCRIPT + text)
        environment = os.environ | {"RESULT_DIR": str(self.result), "LOG_DIR": str(self.log)}
        folder = TrainingDir.of(number, environment)
        start = Start(str(self.script), ("an argument",), str(self.script.parent), self.states)
        folder.begin(start, TrainConfig(1, 2, 4, 2, deterministic=False))
        return subprocess.run(
            [sys.executable, "-m", "edt_hvd.wmla.executor", str(self.script), str(folder.path)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def logged(self) -> str:
        return (self.log / "before-train.log").read_text()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path / "a job")


def drawn(states: RandomStates) -> float:
    states.restore()
    return random.random()


@pytest.mark.parametrize(
    "call",
    [
        "program.train(1, 2, 2)\nprint('what follows')",
        full("try:\n    program.train(1, 2, 2)\nfinally:\n    print('what follows')"),
    ],
)
def test_a_script_ends_at_its_train(job: Job, call: str) -> None:
    done = job.run(call)
    assert done.returncode == 0, done.stderr
    assert "START TRAINING" in done.stdout
    assert "registered for the end" in done.stdout
    assert "what follows" not in done.stdout + job.logged
    assert job.logged.splitlines()[0] == f"drawn {drawn(job.states)!r} ['an argument']"
    assert (job.result / "model" / "train" / "model_epoch_final.pth").exists()
    results = job.result / "run" / "wmla" / "training-1" / "results.1.jsonl"
    assert [line.split('"')[3] for line in results.read_text().splitlines()] == [
        "Begun", "StepDone", "StepDone", "EpochDone", "TrainingDone",
    ]  # fmt: skip


def test_what_fails_in_the_training_cannot_be_caught_by_the_script(job: Job) -> None:
    done = job.run(
        "samples[3] = None\ntry:\n    program.train(1, 2, 2)\nexcept Exception:\n    print('so what')\n"
    )
    assert done.returncode == 1
    assert done.stderr.rstrip().splitlines()[-1].startswith("TypeError: ")
    assert "so what" not in done.stdout + job.logged


@pytest.mark.parametrize(
    "text, exit_code, said",
    [
        ("raise OSError('no data')", 1, "OSError: no data"),
        ("sys.exit('no data')", 1, "no data"),
        ("sys.exit(3)", 3, ""),
        ("", 1, "in an executor without its 1. call of train(), which it has made in the driver"),
        ("sys.exit(0)", 1, "ended with exit code 0 in an executor without its 1. call of train()"),
        ("open(sys.argv[0].replace('main.py', 'result/settings'), 'w')", 1, "WriteRefusedError: "),
    ],
)
def test_a_script_that_does_not_come_to_train_says_why(
    job: Job, text: str, exit_code: int, said: str
) -> None:
    done = job.run(text + "\n")
    assert done.returncode == exit_code
    assert said in done.stderr
    assert "drawn" in job.logged
    assert "drawn" not in done.stdout


def test_an_earlier_training_is_not_repeated(job: Job) -> None:
    assert job.run("program.train(1, 2, 2)").returncode == 0
    TrainingDir.of(1, {"RESULT_DIR": str(job.result)}).keep_final(job.result / "model")
    text = (
        "program.train(1, 2, 2)\nprint(program.download())\nprint('sum', model.weight.sum().item())\n"
        "program.train(1, 2, 2)\n"
    )
    done = job.run(text, number=2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("START TRAINING") == 1
    kept = TrainingDir.of(1, {"RESULT_DIR": str(job.result)}).model_dir / "train" / "model_epoch_final.pth"
    weights: dict[str, Any] = torch.load(kept)
    assert f"sum {weights['weight'].sum().item()}" in job.logged


def test_children_of_an_executor_are_none() -> None:
    with pytest.raises(WmlaError, match="unset it in processes that the script starts"):
        executing.current()


def test_the_command_line_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["executor"])
    with pytest.raises(SystemExit, match=r"usage: .* edt_hvd\.wmla\.executor SCRIPT FOLDER"):
        main()
