"""Executors as processes: what a script does there before, at and after its `train`."""

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from edt_hvd.wmla.executor import main
from edt_hvd.wmla.job_dir import JobDir, Start
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.random_states import RandomStates
from edt_hvd.wmla.train_call import describe
from edt_hvd.wmla.train_config import TrainConfig
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
        self.folder = JobDir.of({"RESULT_DIR": str(self.result)})

    def run(self, text: str, number: int = 1) -> subprocess.CompletedProcess[str]:
        self.script.write_text(SCRIPT + text)
        environment = os.environ | {
            "RESULT_DIR": str(self.result),
            "LOG_DIR": str(self.log),
            "EDT_WMLA_DETERMINISTIC": "0",
        }
        self.folder.begin(Start(str(self.script), ("an argument",), str(self.script.parent), 1, self.states))
        folder = self.folder.training(number)
        folder.begin(driver_call())
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


def driver_call() -> dict[str, str]:
    """What the driver has noted of `program.train(1, 2, 2)`."""
    model = torch.nn.Linear(2, 2)
    program = Program(model, torch.optim.SGD(model.parameters(), 0.1), torch.nn.CrossEntropyLoss(), list)
    seed = torch.initial_seed() % 2**63
    return describe(program, TrainConfig(1, 2, 4, 2, seed=seed, deterministic=False))


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
        ("", 1, "in an executor before call 1 of train(), which it has made in the driver"),
        ("sys.exit(0)", 1, "ended with exit code 0 in an executor before call 1 of train()"),
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


COUNTING = """
class Counting:
    count = 0

    def on_epoch_begin(self, epoch):
        self.count += 1
        model.bias.requires_grad_(False)

counting = Counting()
optimizer = program._program.optimizer
program = FabricModel(model, lambda: (samples, None), loss, optimizer, user_callback=counting)
"""


def test_an_earlier_training_is_not_repeated(job: Job) -> None:
    assert job.run(COUNTING + "program.train(1, 2, 2)").returncode == 0
    text = (
        "program.train(1, 2, 2)\nprint(program.download())\n"
        "print('sum', model.weight.sum().item(), counting.count, model.bias.requires_grad)\n"
        "model.bias.requires_grad_(True)\nprogram.train(1, 2, 2)\n"
    )
    done = job.run(COUNTING + text, number=2)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("START TRAINING") == 1
    content: dict[str, Any] = torch.load(job.folder.training(1).outcome, weights_only=False)
    assert f"sum {content['model']['weight'].sum().item()} 1 False" in job.logged


def test_an_earlier_training_that_failed_fails_here_too(job: Job) -> None:
    text = (
        "from edt_hvd.wmla import TrainingFailedError\n"
        "try:\n    program.train(1, 2, 2)\nexcept TrainingFailedError as error:\n    print(error)\n"
        "program.train(1, 2, 2)\n"
    )
    done = job.run(text, number=2)
    assert done.returncode == 0, done.stderr
    assert "call 1 of train() failed in the driver" in job.logged


def test_a_call_that_is_refused_does_not_count(job: Job) -> None:
    done = job.run(
        "try:\n    program.train(0, 2, 2)\nexcept ValueError as error:\n    print(error)\n"
        "program.train(1, 2, 2)\n"
    )
    assert done.returncode == 0, done.stderr
    assert "epoch_number=0 is below 1" in job.logged


@pytest.mark.parametrize(
    "call, said",
    [
        ("program.train(2, 2, 2)", "train()'s epochs is 2 here, 1 in the driver"),
        full("torch.manual_seed(7)\nprogram.train(1, 2, 2)", "train()'s seed is 7 here"),
    ],
)
def test_a_call_that_differs_from_the_drivers_trains_nothing(job: Job, call: str, said: str) -> None:
    done = job.run(
        f"try:\n    {call.replace(chr(10), chr(10) + '    ')}\nexcept Exception:\n    print('caught')"
    )
    assert done.returncode == 1
    name, _, told = done.stderr.partition(": ")
    assert name == "edt_hvd.wmla.errors.WmlaError"  # by which the launcher knows that it is the cause
    assert told.startswith("call 1 of train() differs in this executor: ")
    assert said in done.stderr
    assert "caught" not in done.stdout + job.logged
    assert not (job.result / "model").exists()


def test_what_is_registered_for_the_end_leaves_shared_files_alone(job: Job) -> None:
    done = job.run(
        "import os, shutil, tempfile\n"
        "temporary = tempfile.mkdtemp()\n"
        "atexit.register(shutil.rmtree, temporary)\n"
        "atexit.register(shutil.rmtree, os.environ['RESULT_DIR'])\n"
        "print('temporary', temporary, flush=True)\n"
        "program.train(1, 2, 2)\n"
    )
    assert done.returncode == 0, done.stderr
    assert f"removes {job.result} outside of train()" in done.stderr
    temporary = next(line for line in job.logged.splitlines() if line.startswith("temporary "))
    assert not Path(temporary.removeprefix("temporary ")).exists()


def test_results_that_cannot_be_written_end_the_executor(job: Job) -> None:
    done = job.run(
        "import edt_hvd.wmla.result_files as files\n"
        "def fail(*_):\n    raise OSError(28, 'No space left on device')\n"
        "files.ResultWriter.close = fail\n"
        "try:\n    program.train(1, 2, 2)\nexcept OSError:\n    print('caught', flush=True)"
    )
    assert done.returncode == 1
    assert done.stderr.rstrip().endswith("OSError: [Errno 28] No space left on device")
    assert "caught" not in done.stdout + job.logged


def test_the_command_line_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["executor"])
    with pytest.raises(SystemExit, match=r"usage: .* edt_hvd\.wmla\.executor SCRIPT FOLDER"):
        main()
