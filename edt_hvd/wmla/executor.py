"""The program of an executor: ``python -m edt_hvd.wmla.executor SCRIPT FOLDER``; edt-launch starts it.

It runs the job's script, as the driver does and from the same random states, up to the call of `train` that
the folder is of. So modules, registries and devices are what the script makes of them.
"""

import os
import sys
from pathlib import Path

import torch

import edt_hvd
from edt_hvd.wmla import executing, process, script
from edt_hvd.wmla.before_train_log import BeforeTrainLog
from edt_hvd.wmla.executing import Executor
from edt_hvd.wmla.job_dir import TrainingDir
from edt_hvd.wmla.process import Role
from edt_hvd.wmla.write_guard import WriteGuard


def main() -> None:
    """Take part in the training that the command line names."""
    if len(sys.argv) != 3:
        sys.exit("usage: python -m edt_hvd.wmla.executor SCRIPT FOLDER")
    folder = TrainingDir(Path(sys.argv[2]))
    start = folder.job.read()
    process.become(Role.EXECUTOR, start)
    log = BeforeTrainLog()
    own = [] if log.path is None else [log.path.parent]
    guard = WriteGuard(Path(os.environ["RESULT_DIR"]), own)
    executing.become_executor(Executor(folder, log, guard))
    edt_hvd.init()  # binds the device, for scripts that choose theirs before `train`
    os.chdir(start.directory)
    log.begin()
    guard.install()
    start.random_states.restore()
    torch.cuda.manual_seed_all(torch.initial_seed())  # the driver has none; takes effect once CUDA is used
    try:
        script.run(start.script, start.arguments)
        ending = ""
    except SystemExit as error:
        if error.code not in (None, 0):
            raise
        ending = " with exit code 0"
    finally:
        log.end()
    sys.exit(
        f"{start.script} ended{ending} in an executor before call {folder.number} of train(), which it has "
        f"made in the driver; what it printed is in {log.path}"
    )


if __name__ == "__main__":
    main()
