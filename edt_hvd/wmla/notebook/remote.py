"""The driver of a notebook's training in the pool: the job's code is what the kernel has put together.

It asks edt-launch for executors, prints their results, which the kernel reads in the job's log, and puts what
the training leaves behind where the kernel can fetch it.
"""

import json
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from multiprocessing.connection import wait
from pathlib import Path

from edt_hvd.wmla.job_dir import JobDir, TrainingDir
from edt_hvd.wmla.launching import Launcher, executor_program
from edt_hvd.wmla.result_file import ResultReader
from edt_hvd.wmla.results import encode

SCRIPT, TRAINING = "notebook.py", "training.json"
"""What the code of such a job has, besides the two files of a training."""

OUTCOME = Path("model", "notebook", "outcome.pt")
"""Where the outcome is, among the job's results."""

MARK = "edt-result "
"""What lines with results begin with."""

LOOK_INTERVAL = 0.5
"""Seconds from one look for new results to the next."""


@dataclass(frozen=True)
class Training:
    """What the kernel wants: executors for its call `number` of `train`."""

    number: int
    max_workers: int
    digest: str

    def write(self, folder: Path) -> None:
        """Into a job's code."""
        (folder / TRAINING).write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, folder: Path) -> "Training":
        """From a job's code."""
        return cls(**json.loads((folder / TRAINING).read_text(encoding="utf-8")))


def copy(files: TrainingDir | Path, target: TrainingDir | Path) -> None:
    """Copy what is trained from a training to a job's code, or back."""
    for name in ("program", "settings.json"):
        source, beside = (each.path if isinstance(each, TrainingDir) else each for each in (files, target))
        shutil.copyfile(source / name, beside / name)


def drive() -> None:
    """Have the executors train; ends the process with an error if they end without success."""
    here = Path.cwd()
    asked = Training.read(here)
    folder = JobDir.of().training(asked.number)
    folder.begin()
    copy(here, folder)
    _train(folder, executor_program(str(here / SCRIPT), folder.path, asked.digest), asked.max_workers)
    target = Path(os.environ["RESULT_DIR"], OUTCOME)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder.outcome, target)


def _train(folder: TrainingDir, command: list[str], most: int) -> None:
    launcher, results = Launcher.of(os.environ), ResultReader(folder.results)
    launcher.train(folder.number, command, most)
    ended = None
    while ended is None:
        if wait([launcher.fileno()], LOOK_INTERVAL):
            ended = launcher.receive(folder.number)
        for message in results.new():
            print(MARK + encode(message).decode().rstrip(), flush=True)
    if ended.exit_code != 0:
        sys.exit(ended.message or f"the executors ended with exit code {ended.exit_code}")
