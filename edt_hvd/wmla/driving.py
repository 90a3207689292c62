"""The driver's part of a training: hand it to executors, follow what they report, take over the result."""

import itertools
import os
import selectors
from collections.abc import Callable
from pathlib import Path

import edt_hvd
from edt_hvd.wmla.channel import Listener
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.handing import payload
from edt_hvd.wmla.handing.generators import Generators
from edt_hvd.wmla.handing.payload import Payload
from edt_hvd.wmla.launching import Ended, Launcher, executor_program
from edt_hvd.wmla.logs.journal import Journal
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.results import Message
from edt_hvd.wmla.schedule import ScaleUp, Schedule, executors_wanted
from edt_hvd.wmla.training import saving
from edt_hvd.wmla.training.engine import Engine, place

LAST_WORDS = 10.0
"""Seconds that are waited for results on the way once all executors have ended."""

LOOK_INTERVAL = 5.0
"""Seconds after which it is seen to that nobody waits in vain, though nothing has come."""

_numbers = itertools.count(1)

MakeJournal = Callable[[Callable[[int], None]], Journal]
"""Makes a journal that calls the function given before every epoch."""


def train_in_executors(
    program: Program,
    schedule: Schedule,
    make_journal: MakeJournal,
    launcher: Launcher,
    scale_up: ScaleUp | None,
) -> None:
    """Have edt-launch run executors, and call the loggers with what they report.

    Raises:
        TrainingFailedError: they ended without success, or edt-launch is gone.
    """
    number = next(_numbers)
    listener = Listener()
    limit = schedule.max_workers

    def before_epoch(epoch: int) -> None:
        nonlocal limit
        if scale_up is None or epoch >= schedule.epochs:
            return
        wanted = executors_wanted(scale_up, epoch, schedule.max_workers)
        if wanted is not None and wanted != limit:
            limit = wanted
            launcher.limit(limit)

    journal = make_journal(before_epoch)
    try:
        path = _run_dir() / f"training-{number}.pkl"
        payload.write(path, Payload(program, schedule, listener.address))
        print(f"start message server {listener.address.hosts[0]}:{listener.address.port}", flush=True)
        launcher.train(number, executor_program(path), schedule.max_workers)
        before_epoch(0)
        _follow(launcher, listener, journal).check()
        journal.end()
    finally:
        listener.close()
    saving.load_final(saving.model_dir(), program.model, program.optimizer)


def _follow(launcher: Launcher, listener: Listener, journal: Journal) -> Ended:
    """Take what the executors report until they have ended."""
    with selectors.DefaultSelector() as selector:
        selector.register(launcher.fileno(), selectors.EVENT_READ)
        selector.register(listener.fileno(), selectors.EVENT_READ)
        ended: Ended | None = None
        while ended is None:
            if any(key.fd == launcher.fileno() for key, _ in selector.select(LOOK_INTERVAL)):
                ended = launcher.receive()
            listener.receive(journal.take)
    listener.receive(journal.take)  # connections that were made, but not taken yet
    while listener.has_connections:
        if not listener.receive(journal.take, LAST_WORDS):
            listener.give_up_oldest()
            listener.receive(journal.take)
    return ended


def _run_dir() -> Path:
    if "RESULT_DIR" not in os.environ:
        raise WmlaError("RESULT_DIR is not set; edt-launch --wmla sets it for the script it starts")
    return Path(os.environ["RESULT_DIR"], "run", "wmla")


class Here:
    """The outlet of a training in this process: the coordinator tells, all take it in."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def tell(self, message: Message) -> None:
        """As in `engine.Outlet`."""
        self._journal.take(message, aloud=edt_hvd.is_coordinator())


def train_here(program: Program, schedule: Schedule, make_journal: MakeJournal) -> None:
    """Train in this process, together with others if mpirun or edt-launch has started several.

    The script finds its random numbers as they were, as it does where executors train.
    """
    home = next(program.model.parameters()).device
    journal = make_journal(lambda _: None)
    engine = Engine(program, schedule, Here(journal), lambda _: None)
    generators = Generators.now()
    try:
        engine.run()
    finally:
        generators.restore()
    journal.end(aloud=edt_hvd.is_coordinator())
    place(program, home)
