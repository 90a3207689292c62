"""The training in an executor: its script has come to `train`, and goes no further."""

import atexit
import contextlib
import os
import sys
import traceback
from dataclasses import dataclass, field
from typing import NoReturn

from edt_hvd.wmla.before_train_log import BeforeTrainLog
from edt_hvd.wmla.errors import TrainingFailedError, WmlaError
from edt_hvd.wmla.job_dir import TrainingDir
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.result_files import ResultWriter
from edt_hvd.wmla.train_call import check_same, describe
from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training import outcome
from edt_hvd.wmla.training.engine import Engine
from edt_hvd.wmla.write_guard import WriteGuard


@dataclass
class Executor:
    """What this process takes part in.

    Attributes:
        folder: of the training.
        log: of what is printed before the training.
        guard: of the files that the script must not write outside of the training.
    """

    folder: TrainingDir
    log: BeforeTrainLog
    guard: WriteGuard
    _calls: int = field(default=0, init=False)

    def train(self, program: Program, config: TrainConfig) -> None:
        """The script calls `train`.

        Returns from calls before the one that this executor was started for, whose outcome is loaded. That
        one ends the process: what follows is the driver's business.

        Raises:
            TrainingFailedError: an earlier call, which has failed in the driver.
        """
        self._calls += 1
        if self._calls == self.folder.number:
            self._train_and_exit(program, config)
        earlier = self.folder.job.training(self._calls)
        if not earlier.outcome.exists():
            raise TrainingFailedError(f"call {self._calls} of train() failed in the driver")
        outcome.load(earlier.outcome, program, config.epochs)

    def _train_and_exit(self, program: Program, config: TrainConfig) -> NoReturn:
        """Train, and end the process as if the script had ended, but without what it has around `train`."""
        exit_code = 1
        try:
            exit_code = self._exit_code_of_training(program, config)
            atexit._run_exitfuncs()
            for stream in (sys.stdout, sys.stderr):
                stream.flush()
        finally:
            os._exit(exit_code)

    def _exit_code_of_training(self, program: Program, config: TrainConfig) -> int:
        try:
            self.log.end()
            with self.guard.lifted(), contextlib.closing(ResultWriter(self.folder.path)) as results:
                check_same(self.folder.call(), describe(program, config), self.folder.number)
                if self.folder.initial.exists():
                    outcome.load(self.folder.initial, program, config.epochs)
                Engine(program, config, results, _print, self.folder.outcome).run()
        except SystemExit as ending:
            if isinstance(ending.code, str):
                print(ending.code, file=sys.stderr)
            return ending.code if isinstance(ending.code, int) else int(ending.code is not None)
        except WmlaError as error:
            traceback.print_exception(type(error), error, None, chain=False)  # the script did not raise it
            return 1
        except BaseException as error:  # noqa: BLE001 - a script that catches it would go on with what follows
            sys.__excepthook__(type(error), error, error.__traceback__)
            return 1
        return 0


_executor: Executor | None = None


def become_executor(executor: Executor) -> None:
    """Let this process be that executor."""
    global _executor
    _executor = executor


def current() -> Executor:
    """The executor that this process is: `process.start` has made sure that it is one."""
    assert _executor is not None
    return _executor


def _print(line: str) -> None:
    print(line, flush=True)
