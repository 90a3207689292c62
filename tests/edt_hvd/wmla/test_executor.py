"""Executors as processes: what a script does there before, at and after its `train`."""

import os
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from edt_hvd.wmla.train_call import describe

from edt_hvd.wmla.job_dir import JobDir, Start
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.random_states import RandomStates
from edt_hvd.wmla.train_config import TrainConfig
from interpreters import Interpreters

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


PROGRAM = """
import sys
from edt_hvd.wmla.executor import main
sys.argv = {arguments!r}
main()
"""


class Job:
    """A folder of a job in which executors are started."""

    def __init__(self, folder: Path, interpreters: Interpreters) -> None:
        self.interpreters = interpreters
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
        arguments = ["executor", str(self.script), str(folder.path)]
        return self.interpreters.run(PROGRAM.format(arguments=arguments), environment)

    @property
    def logged(self) -> str:
        return (self.log / "before-train.log").read_text()


def driver_call() -> dict[str, str]:
    """What the driver has noted of `program.train(1, 2, 2)`."""
    model = torch.nn.Linear(2, 2)
    program = Program(model, torch.optim.SGD(model.parameters(), 0.1), torch.nn.CrossEntropyLoss(), list)
    seed = torch.initial_seed() % 2**63
    return describe(program, TrainConfig(1, 2, 4, 2, seed=seed, deterministic=False))


@pytest.fixture(scope="module")
def importing() -> Iterator[Interpreters]:
    with Interpreters("import horovod.torch, edt_hvd.wmla.executor") as found:
        yield found


@pytest.fixture
def job(tmp_path: Path, importing: Interpreters) -> Job:
    return Job(tmp_path / "a job", importing)


def drawn(states: RandomStates) -> float:
    states.restore()
    return random.random()


def test_a_script_ends_at_its_train(job: Job) -> None:
    done = job.run("try:\n    program.train(1, 2, 2)\nfinally:\n    print('what follows')")
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


CAUGHT = "try:\n    {}\nexcept Exception:\n    print('so what')\n"


@pytest.mark.parametrize(
    "text, exit_code, said",
    [
        (CAUGHT.format("samples[3] = None; program.train(1, 2, 2)"), 1, "TypeError: "),
        (CAUGHT.format("program.train(2, 2, 2)"), 1, "train()'s epochs is 2 here, 1 in the driver"),
        ("raise OSError('no data')", 1, "OSError: no data"),
        ("", 1, "in an executor before call 1 of train(), which it has made in the driver"),
        ("open(sys.argv[0].replace('main.py', 'result/settings'), 'w')", 1, "WriteRefusedError: "),
    ],
)
def test_what_keeps_it_from_training_ends_it_whatever_the_script_catches(
    job: Job, text: str, exit_code: int, said: str
) -> None:
    done = job.run(text + "\n")
    assert done.returncode == exit_code
    assert said in done.stderr
    assert "drawn" in job.logged
    assert "so what" not in done.stdout + job.logged


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
