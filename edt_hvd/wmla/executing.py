"""The training in an executor: its script has come to `train`, and goes no further."""

import atexit
import os
import sys
from dataclasses import dataclass, field
from typing import NoReturn

from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.own_log import OwnLog
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.result_files import ResultWriter
from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training import saving
from edt_hvd.wmla.training.engine import Engine
from edt_hvd.wmla.training_dir import TrainingDir
from edt_hvd.wmla.write_guard import WriteGuard


@dataclass
class Executor:
    """What this process takes part in.

    Attributes:
        folder: of the training.
        config: as the driver has it.
        log: of what is printed before the training.
        guard: of the files that the script must not write before the training.
    """

    folder: TrainingDir
    config: TrainConfig
    log: OwnLog
    guard: WriteGuard
    _calls: int = field(default=0, init=False)

    def train(self, program: Program) -> None:
        """The script calls `train`.

        Returns from calls before the one that this executor was started for, whose final weights are loaded.
        That one ends the process: what follows is the driver's business.
        """
        self._calls += 1
        if self._calls < self.folder.number:
            model_dir = self.folder.earlier(self._calls).model_dir
            saving.load_final(model_dir, program.model, program.optimizer)
            return
        self.guard.lift()
        self.log.end()
        _end(_exit_code_of(program, self.config, ResultWriter(self.folder.path)))


_executor: Executor | None = None


def become_executor(executor: Executor) -> None:
    """Let this process be that executor."""
    global _executor
    _executor = executor


def current() -> Executor:
    """The executor that this process is.

    Raises:
        WmlaError: it is a child of one.
    """
    if _executor is None:
        raise WmlaError(
            "this process has EDT_WMLA_ROLE=executor from another one; unset it in processes that the script "
            "starts"
        )
    return _executor


def _exit_code_of(program: Program, config: TrainConfig, results: ResultWriter) -> int:
    try:
        Engine(program, config, results, lambda line: print(line, flush=True)).run()
    except SystemExit as ending:
        if isinstance(ending.code, str):
            print(ending.code, file=sys.stderr)
        return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
    except BaseException as error:  # noqa: BLE001 - a script that catches it would go on with what follows
        sys.__excepthook__(type(error), error, error.__traceback__)
        return 1
    finally:
        results.close()
    return 0


def _end(exit_code: int) -> NoReturn:
    """End the process, as if the script had ended, but without whatever it has around `train`."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(exit_code)
