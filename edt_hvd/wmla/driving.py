"""The driver's part of a training: have executors train, follow their results, take over the model."""

import itertools
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from types import FrameType

import edt_hvd
from edt_hvd.wmla import program_file
from edt_hvd.wmla.errors import TrainingFailedError
from edt_hvd.wmla.job_dir import JobDir, TrainingDir
from edt_hvd.wmla.launching import Launcher, executor_program
from edt_hvd.wmla.logs.result_log import ResultLog
from edt_hvd.wmla.pickling.patches import warn_of_patches
from edt_hvd.wmla.pickling.random_states import RandomStates
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.program_file import Settings
from edt_hvd.wmla.results import Begun, Failed, Message, decode
from edt_hvd.wmla.train_config import ScaleUp, TrainConfig, executors_wanted
from edt_hvd.wmla.training import outcome
from edt_hvd.wmla.training.engine import Engine, move
from edt_messages.wmla import Ended, ExecutorMessage

LOOK_INTERVAL = 0.2
"""Seconds from one look at signals, or for the outcome, to the next."""

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
    settings: Settings | None = None,
    script: str = "",
    job: JobDir | None = None,
) -> None:
    """Have edt-launch run executors, and call the loggers with their results.

    Args:
        program, config: what to train.
        make_result_log: makes the log of the results.
        launcher: runs the executors.
        scale_up: asked for the number of executors before every epoch.
        settings, script, job: for the executors; default: this driver's.

    Raises:
        UnpicklableError: a part of the program cannot be sent to executors; none was started.
        TrainingFailedError: they ended without success, or edt-launch is gone.
    """
    folder = (job or JobDir.of()).training(next(_numbers))
    folder.begin()
    warn_of_patches()
    digest = program_file.write(folder, program, config, settings or Settings.now())
    limit = Limit(launcher, config.max_workers)

    def before_epoch(epoch: int) -> None:
        if scale_up is not None and epoch < config.epochs:
            limit.wanted = executors_wanted(scale_up, epoch, config.max_workers) or limit.wanted
            limit.tell()

    result_log = make_result_log(before_epoch)
    try:
        command = executor_program(script or sys.argv[0], folder.path, digest)
        launcher.train(folder.number, command, config.max_workers)
        before_epoch(0)
        _follow(launcher, folder, result_log, limit)
        result_log.end()
    except BaseException:
        with suppress(TrainingFailedError):  # edt-launch is gone
            launcher.cancel(folder.number)
        raise
    outcome.load(folder.outcome, program, config.epochs)


class Limit:
    """How many executors are of use at most: edt-launch is told when that changes."""

    def __init__(self, launcher: Launcher, max_workers: int) -> None:
        self._launcher = launcher
        self._sent = max_workers
        self.wanted = max_workers
        """What the program wants."""
        self.useful = max_workers
        """Mini-batches of a step."""

    def tell(self) -> None:
        """Tell edt-launch, if it does not know."""
        found = min(self.wanted, self.useful)
        if found != self._sent:
            self._sent = found
            self._launcher.limit(found)


class Follower:
    """Takes the results of a training.

    Raises:
        TrainingFailedError: from `take`; executors have failed twice in the same way.
    """

    def __init__(self, result_log: ResultLog, limit: Limit) -> None:
        self._result_log = result_log
        self._limit = limit
        self._failures: set[str] = set()

    def take(self, text: str) -> None:
        """Take a message of an executor."""
        message = decode(text)
        if isinstance(message, Failed):
            if message.error in self._failures:
                raise TrainingFailedError(f"executors failed twice in the same way: {message.error}")
            self._failures.add(message.error)
            return
        if isinstance(message, Begun):
            self._limit.useful = min(self._limit.useful, message.batches)
            self._limit.tell()
        self._result_log.take(message)


def _follow(launcher: Launcher, folder: TrainingDir, result_log: ResultLog, limit: Limit) -> None:
    """Take the executors' results until they have ended; raises `TrainingFailedError` without success."""
    follower = Follower(result_log, limit)
    ended: Ended | None = None
    with _termination() as is_terminated:
        while ended is None:
            is_last = is_terminated()
            if wait([launcher.fileno()], LOOK_INTERVAL):
                for message in launcher.receive(folder.number):
                    if isinstance(message, ExecutorMessage):
                        follower.take(message.text)
                    else:
                        ended = message
            elif is_last:
                break
    assert ended is not None, "SIGTERM has ended this process"
    if ended.exit_code != 0:
        raise TrainingFailedError(
            f"the training ended with exit code {ended.exit_code}: "
            f"{ended.message or 'see the logs of the executors'}"
        )
    until = time.monotonic() + UNSEEN
    while not folder.outcome.exists() and time.monotonic() < until:
        time.sleep(LOOK_INTERVAL)
    if not folder.outcome.exists():
        raise TrainingFailedError(
            f"the executors ended with exit code 0, but {UNSEEN:g} s later there is no {folder.outcome}: "
            "none of them has come to the end of the training; see their logs"
        )
    if not result_log.is_complete:
        warnings.warn(
            "the last results of the training were lost with an executor; the model has them, the logger "
            "does not",
            stacklevel=2,
        )


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


def train_here(program: Program, config: TrainConfig, make_result_log: MakeResultLog) -> None:
    """Train in this process, together with others if mpirun or edt-launch has started several.

    The script finds its random numbers as they were, as it does where executors train.
    """
    home = next(program.model.parameters()).device
    result_log = make_result_log(lambda _: None)

    def emit(message: Message) -> None:  # the coordinator alone notifies the listeners
        result_log.take(message, notify=edt_hvd.is_coordinator())

    engine = Engine(program, config, emit, lambda _: None)
    states = RandomStates.now()
    try:
        engine.run()
    finally:
        states.restore()
    result_log.end(notify=edt_hvd.is_coordinator())
    move(program, home)
