"""The driver of a notebook's training in the pool: the job's code is what the kernel has put together.

It asks edt-launch for executors, prints their results, which the kernel reads in the job's log, and puts what
the training leaves behind where the kernel can fetch it.
"""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from edt_hvd.wmla.job_dir import JobDir, Start, TrainingDir
from edt_hvd.wmla.launching import Launcher, executor_program
from edt_hvd.wmla.random_states import RandomStates
from edt_hvd.wmla.result_files import ResultReader
from edt_hvd.wmla.results import encode

SCRIPT, TRAINING, INITIAL = "notebook.py", "training.json", "initial.pt"
"""What the code of such a job consists of, besides the modules that are beside the notebook."""

OUTCOME = Path("model", "notebook", "outcome.pt")
"""Where the outcome is, among the job's results."""

MARK = "edt-result "
"""What lines with results begin with."""

LOOK_INTERVAL = 0.5
"""Seconds from one look for new results to the next."""


@dataclass(frozen=True)
class Training:
    """What the kernel wants: call `number` of `train`, which `call` describes, with executors from 1 on."""

    number: int
    max_workers: int
    call: Mapping[str, str]
    random_states: Mapping[str, Any]

    def write(self, folder: Path) -> None:
        """Into a job's code."""
        (folder / TRAINING).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Training":
        """From a job's code."""
        return cls(**json.loads((folder / TRAINING).read_text(encoding="utf-8")))


def drive() -> None:
    """Have the executors train; ends the process with an error if they end without success."""
    here, job = Path.cwd(), JobDir.of()
    asked = Training.read(here)
    states = RandomStates.from_json(asked.random_states)
    start = job.begin(Start(str(here / SCRIPT), (), str(here), asked.max_workers, states))
    for number in range(1, asked.number):  # what cells do with earlier ones, they do with the present state
        job.training(number).path.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(here / INITIAL, job.training(number).outcome)
    folder = job.training(asked.number)
    folder.begin(asked.call)
    shutil.copyfile(here / INITIAL, folder.initial)
    _train(folder, start.script, asked.max_workers)
    target = Path(os.environ["RESULT_DIR"], OUTCOME)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder.outcome, target)


def _train(folder: TrainingDir, script: str, most: int) -> None:
    launcher, results = Launcher.of(os.environ), ResultReader(folder.path)
    launcher.train(folder.number, executor_program(script, folder.path), most)
    ended = None
    while ended is None:
        if wait([launcher.fileno()], LOOK_INTERVAL):
            ended = launcher.receive(folder.number)
        for message in results.new():
            print(MARK + encode(message).decode().rstrip(), flush=True)
    if ended.exit_code != 0:
        sys.exit(ended.message or f"the executors ended with exit code {ended.exit_code}")
