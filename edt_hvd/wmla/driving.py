"""The driver's part of a training: have executors train, follow their results, take over the model."""

import itertools
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import wait
from types import FrameType

from typing_extensions import override

import edt_hvd
from edt_hvd.wmla import process
from edt_hvd.wmla.errors import TrainingFailedError
from edt_hvd.wmla.job_dir import JobDir, Start, TrainingDir
from edt_hvd.wmla.launching import Launcher, executor_program
from edt_hvd.wmla.logs.result_log import ResultLog
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.random_states import RandomStates
from edt_hvd.wmla.result_files import ResultReader
from edt_hvd.wmla.results import Message
from edt_hvd.wmla.train_call import describe
from edt_hvd.wmla.train_config import ScaleUp, TrainConfig, executors_wanted
from edt_hvd.wmla.training import outcome
from edt_hvd.wmla.training.engine import Engine, ResultSink, move
from edt_messages.wmla import Ended

LOOK_INTERVAL = 0.2
"""Seconds from one look for new results to the next."""

UNSEEN = 60.0
"""Seconds after which what other hosts have written is seen here: NFS caches directories for so long."""

_numbers = itertools.count(1)

MakeResultLog = Callable[[Callable[[int], None]], ResultLog]
"""Makes a log of results that calls the function given before every epoch."""


def train_in_executors(
    program: Program,
    config: TrainConfig,
    make_result_log: MakeResultLog,
    launcher: Launcher,
    scale_up: ScaleUp | None,
    *,
    start: Start | None = None,
    job: JobDir | None = None,
    from_here: bool = False,
) -> None:
    """Have edt-launch run executors, and call the loggers with their results.

    Args:
        program, config: what to train.
        make_result_log: makes the log of the results.
        launcher: runs the executors.
        scale_up: asked for the number of executors before every epoch.
        start, job: how the script was started, and the job's folder; default: this driver's.
        from_here: have the executors begin with the program's state here, not with what their script makes.

    Raises:
        TrainingFailedError: they ended without success, or edt-launch is gone.
    """
    start = start or process.start()
    folder = (job or JobDir.of()).training(next(_numbers))
    limit = config.max_workers

    def before_epoch(epoch: int) -> None:
        nonlocal limit
        if scale_up is None or epoch >= config.epochs:
            return
        wanted = executors_wanted(scale_up, epoch, config.max_workers)
        if wanted is not None and wanted != limit:
            limit = wanted
            launcher.limit(limit)

    result_log = make_result_log(before_epoch)
    folder.begin(describe(program, config))
    if from_here:
        outcome.save_here(folder.initial, program, config.epochs)
    try:
        launcher.train(folder.number, executor_program(start.script, folder.path), config.max_workers)
        before_epoch(0)
        _follow(launcher, folder, result_log)
        result_log.end()
    except BaseException as error:
        folder.outcome.unlink(missing_ok=True)  # executors of a later call take this one for failed, too
        if not isinstance(error, TrainingFailedError):
            launcher.cancel(folder.number)
        raise
    outcome.load(folder.outcome, program, config.epochs)


def _follow(launcher: Launcher, folder: TrainingDir, result_log: ResultLog) -> None:
    """Take the executors' results until they have ended; raises `TrainingFailedError` without success."""
    results = ResultReader(folder.path)
    ended: Ended | None = None
    is_last = False
    with _termination() as is_terminated:
        while ended is None and not is_last:
            if wait([launcher.fileno()], LOOK_INTERVAL):
                ended = launcher.receive(folder.number)
            is_last = is_terminated()
            _take(results, result_log)
    assert ended is not None, "SIGTERM has ended this process"
    if ended.exit_code != 0:
        raise TrainingFailedError(
            f"the training ended with exit code {ended.exit_code}: "
            f"{ended.message or 'see the logs of the executors'}"
        )
    _complete(folder, results, result_log)


def _complete(folder: TrainingDir, results: ResultReader, result_log: ResultLog) -> None:
    """Wait for what is in the file system, but not seen here yet.

    Raises:
        TrainingFailedError: there is no outcome.
    """
    until = time.monotonic() + UNSEEN
    while not (result_log.is_complete and folder.outcome.exists()) and time.monotonic() < until:
        time.sleep(LOOK_INTERVAL)
        _take(results, result_log)
    if not folder.outcome.exists():
        raise TrainingFailedError(
            f"the executors ended with exit code 0, but {UNSEEN:g} s later there is no {folder.outcome}: "
            "none of them has come to the end of the training; see their logs"
        )
    if not result_log.is_complete:
        warnings.warn(
            f"the last results of the training are not in {results.folder} {UNSEEN:g} s after its end; the "
            "model has them, the logger does not",
            stacklevel=2,
        )


def _take(results: ResultReader, result_log: ResultLog) -> None:
    for message in results.new():
        result_log.take(message)


@contextmanager
def _termination() -> Iterator[Callable[[], bool]]:
    """Hold back SIGTERM, which ends the driver of a paused job, until the logger has what is written.

    Yields whether it has come. Where the script handles the signal, nothing is held back.
    """
    received = threading.Event()

    def note(_signal: int, _frame: FrameType | None) -> None:
        received.set()

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield received.is_set
        return
    signal.signal(signal.SIGTERM, note)
    try:
        yield received.is_set
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if received.is_set():
            signal.raise_signal(signal.SIGTERM)


class LocalSink(ResultSink):
    """The sink of a training in this process: the coordinator alone notifies the listeners."""

    def __init__(self, result_log: ResultLog) -> None:
        self._result_log = result_log

    @override
    def emit(self, message: Message) -> None:
        self._result_log.take(message, notify=edt_hvd.is_coordinator())


def train_here(program: Program, config: TrainConfig, make_result_log: MakeResultLog) -> None:
    """Train in this process, together with others if mpirun or edt-launch has started several.

    The script finds its random numbers as they were, as it does where executors train.
    """
    home = next(program.model.parameters()).device
    result_log = make_result_log(lambda _: None)
    engine = Engine(program, config, LocalSink(result_log), lambda _: None)
    states = RandomStates.now()
    try:
        engine.run()
    finally:
        states.restore()
    result_log.end(notify=edt_hvd.is_coordinator())
    move(program, home)
