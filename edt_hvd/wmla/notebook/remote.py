"""The driver of a notebook's training in the pool: the job's code is what the kernel has put together.

It asks edt-launch for executors, prints their results, which the kernel reads in the job's log, and puts what
the training leaves behind where the kernel can fetch it.
"""

import json
import os
import shutil
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from edt_hvd.wmla.job_dir import JobDir, TrainingDir
from edt_hvd.wmla.launching import Launcher, executor_program
from edt_messages.wmla import Ended, ExecutorMessage

SCRIPT, TRAINING = "notebook.py", "training.json"
"""What the code of such a job has, besides the program."""

OUTCOME = Path("model", "notebook", "outcome.pt")
"""Where the outcome is, among the job's results."""

MARK = "edt-result "
"""What lines with results begin with."""


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


def drive() -> None:
    """Have the executors train; ends the process with an error if they end without success."""
    here = Path.cwd()
    asked = Training.read(here)
    folder = JobDir.of().training(asked.number)
    folder.begin()
    shutil.copyfile(here / folder.program.name, folder.program)
    _train(folder, executor_program(str(here / SCRIPT), folder.path, asked.digest), asked.max_workers)
    target = Path(os.environ["RESULT_DIR"], OUTCOME)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder.outcome, target)


def _train(folder: TrainingDir, command: list[str], most: int) -> None:
    launcher = Launcher.of(os.environ)
    launcher.train(folder.number, command, most)
    ended: Ended | None = None
    while ended is None:
        for message in launcher.receive(folder.number):
            if isinstance(message, ExecutorMessage):
                print(MARK + message.text, flush=True)
            else:
                ended = message
    if ended.exit_code != 0:
        sys.exit(ended.message or f"the executors ended with exit code {ended.exit_code}")
