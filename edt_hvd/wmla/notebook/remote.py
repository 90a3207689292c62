"""The driver of a notebook's training in the pool: the job's code is what the kernel has put together.

It asks edt-launch for executors, prints their results, which the kernel reads in the job's log, and puts what
the training leaves behind where the kernel can fetch it.
"""

import os
import shutil
import sys
from pathlib import Path

from edt_hvd.wmla.job_dir import JobDir, TrainingDir
from edt_hvd.wmla.launching import Launcher, executor_program
from edt_messages.wmla import Ended, ExecutorMessage

SCRIPT = "notebook.py"
"""The script of such a job; the program is beside it."""

OUTCOME = Path("model", "notebook", "outcome.pt")
"""Where the outcome is, among the job's results."""

MARK = "edt-result "
"""What lines with results begin with."""


def drive(max_workers: str, digest: str) -> None:
    """Have the executors train; ends the process with an error if they end without success.

    Args:
        max_workers: executors at most.
        digest: of the program.
    """
    here = Path.cwd()
    folder = JobDir.of().training(1)
    folder.begin()
    shutil.copyfile(here / folder.program.name, folder.program)
    _train(folder, executor_program(str(here / SCRIPT), folder.path, digest), int(max_workers))
    target = Path(os.environ["RESULT_DIR"], OUTCOME)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(folder.outcome, target)


def _train(folder: TrainingDir, command: list[str], max_workers: int) -> None:
    launcher = Launcher.of(os.environ)
    launcher.train(folder.number, command, max_workers)
    ended: Ended | None = None
    while ended is None:
        for message in launcher.receive(folder.number):
            if isinstance(message, ExecutorMessage):
                print(MARK + message.text, flush=True)
            else:
                ended = message
    if ended.exit_code != 0:
        sys.exit(ended.message or f"the executors ended with exit code {ended.exit_code}")
