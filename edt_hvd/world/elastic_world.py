"""A world whose members change: this worker leaves it and enters the next one, generation by generation.

This is what all elastic worlds have in common. Their assignments come from the subclasses.
"""

import ipaddress
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import NoReturn

import horovod.torch as hvd
from horovod.common.exceptions import HorovodInternalError

from edt_hvd import observing
from edt_hvd.errors import HorovodBuildError
from edt_hvd.world import fast_exit, stages
from edt_hvd.world.control import EventSink
from edt_hvd.world.fixed_world import horovod_init
from edt_hvd.world.interfaces import interface_towards
from edt_hvd.world.stages import Stage
from edt_messages.messages import Assign

ATTEMPTS = 10
"""How often forming a world is tried before the worker gives up; that takes 16 seconds at least."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds before the third attempt, and before later ones, each twice as long as the one before."""


class ElasticWorld(ABC):
    """One worker's view of the worlds that it is a member of, one after the other.

    Attributes:
        launcher: where this worker reports to; None if there is nobody.
        generation: serial number of the world in force; 0 before the first.
        finished: whether an elastic function has returned: no more workers come or go.
        entered: whether an elastic function has been called.
        assigned_at: when this worker was assigned to the present world, by the monotonic clock.
        save_state: called when this worker leaves as the last that has the state.
        on_stop: called in any thread, with the number of every newer generation that is announced.
        has_lost_state: whether training has begun, and no worker of the present world has its state.
    """

    def __init__(self) -> None:
        _horovods_abort()
        self.launcher: EventSink | None = None
        self.generation = 0
        self.finished = False
        self.entered = False
        self.assigned_at = 0.0
        self._forget_state()
        self.has_lost_state = False
        self._lock = threading.Lock()
        self._forming: int | None = None
        """The generation of the world that is being formed."""
        self._broken_generation = 0

    # What the subclasses know.

    @abstractmethod
    def start(self) -> None:
        """Get in touch with the program that assigns the worlds."""

    @property
    @abstractmethod
    def max_size(self) -> int:
        """The largest number of workers that the job may have."""

    @property
    @abstractmethod
    def slot(self) -> int:
        """This worker's number on its host."""

    @property
    @abstractmethod
    def wanted_generation(self) -> int:
        """The newest generation that has been announced."""

    @abstractmethod
    def _wait_for_assignment(self, progress: int) -> Assign | None:
        """Wait outside any world for the next assignment; None when this worker is to leave."""

    # What the elastic function's wrapper calls.

    def join(self) -> None:
        """Wait for a first assignment, unless this worker is a member of a world."""
        if self.generation == 0:
            self.rejoin(progress=0)

    def enter(self) -> None:
        """The elastic function is about to be called for the first time. A collective."""
        self.join()
        self.entered = True

    def abandon(self) -> None:
        """Leave the collectives after the loss of a member, so that no other waits for this worker."""
        abort_collectives()

    def rejoin(self, progress: int) -> None:
        """Leave the present world, if any, and wait for an assignment to the next one.

        Args:
            progress: how far this worker's state is, in commits.

        Raises:
            SystemExit: with code 0, when this worker is not needed any more.
            HorovodInternalError: no world could be formed in `ATTEMPTS` attempts.
        """
        for attempt in range(ATTEMPTS):
            stages.enter(Stage.FORMING)
            hvd.shutdown()
            stages.enter(Stage.OUTSIDE)
            time.sleep(_pause_before(attempt))
            for observer in observing.observers():
                observer.at_rendezvous(self.generation)
            assignment = self._wait_for_assignment(progress)
            if assignment is None:
                self._leave()
            stages.enter(Stage.FORMING)
            self.assigned_at = time.monotonic()
            for observer in observing.observers():
                observer.assigned(assignment.generation, assignment.rank)
            if self._form(assignment):
                return
            self.abandon()
        raise HorovodInternalError(f"no world could be formed in {ATTEMPTS} attempts")

    def synced(self) -> None:  # noqa: B027 - a launcher wants to know, nobody else
        """This worker has the state of the present world."""

    def bring_checkpoint(self, folder: str) -> None:  # noqa: B027 - as `synced`
        """Have the newest checkpoint brought into a folder of this host.

        Raises:
            CoordinatorLostError: the launcher went away meanwhile.
        """

    def finish(self) -> None:
        """End the training of this worker: it takes no part in worlds that are announced from now on."""
        stages.enter(Stage.OUTSIDE)
        self.finished = True
        self._forget_state()

    def _forget_state(self) -> None:
        """Keep nothing of a state, with its models, whose training is over."""
        self.save_state: Callable[[], None] = lambda: None
        self.on_stop: Callable[[int], None] = lambda generation: None

    @property
    def is_broken(self) -> bool:
        """Whether the launcher has said that the world in force has lost a member."""
        return self._broken_generation >= self.generation > 0

    @property
    def stop_wanted(self) -> bool:
        """Whether a membership newer than the one in force has been announced."""
        return self.wanted_generation > self.generation

    # Entering and leaving.

    def _form(self, assignment: Assign) -> bool:
        """Enter the assigned world; False when a member did not make it."""
        with self._lock:
            if self._broken_generation >= assignment.generation:
                return False
            self._forming = assignment.generation
        entered = _initialize(assignment)
        with self._lock:
            self._forming = None
            if entered:
                self.generation = assignment.generation
        return entered

    def _leave(self) -> NoReturn:
        fast_exit.register()
        raise SystemExit(0)

    def _note_announced(self, generation: int) -> None:
        self.on_stop(generation)

    def _note_broken(self, generation: int) -> None:
        """Abort the collectives of a world that has lost a member, which would end by a timeout only."""
        with self._lock:
            self._broken_generation = max(generation, self._broken_generation)
            present = self.generation if self._forming is None else self._forming
            if generation >= present:
                abort_collectives()


def abort_collectives() -> None:
    """Let whatever waits in a collective, or for the world that is being formed, fail at once.

    Horovod ends a world in which an operation has failed. But a loss does not show on every connection, such
    as one to a host without power: whoever waits there would notice only after Gloo's timeout of 30 seconds.
    That ends Horovod's background loop, which aborts NCCL's communicators, so that kernels that wait for a
    lost worker end, and their operations fail. All this comes with the build of Horovod (patches in
    ``native/horovod``).
    """
    _horovods_abort()()


def _pause_before(attempt: int) -> float:
    """Seconds that attempts, counted from 0, are put off; the second one comes at once, as after a loss."""
    return 0.0 if attempt < 2 else min(FIRST_PAUSE * 2 ** (attempt - 2), LONGEST_PAUSE)


def _horovods_abort() -> Callable[[], object]:
    """The function of Horovod's library. The number of connections that it returns says nothing here.

    Raises:
        HorovodBuildError: it is not there.
    """
    try:
        found: Callable[[], object] = hvd.mpi_ops._basics.MPI_LIB_CTYPES.horovod_abort_collectives
    except AttributeError:
        raise HorovodBuildError from None
    return found


def _initialize(assignment: Assign) -> bool:
    """Have Horovod form the assigned world; False when a member did not make it."""
    for name in ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size"):
        os.environ[f"HOROVOD_{name.upper()}"] = str(getattr(assignment, name))
    os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"] = str(assignment.port)
    if assignment.address:
        os.environ["HOROVOD_GLOO_RENDEZVOUS_ADDR"] = assignment.address
        os.environ["HOROVOD_GLOO_IFACE"] = interface = interface_towards(assignment.address)
        if not ipaddress.ip_address(assignment.address).is_loopback:  # else NCCL could never leave it
            os.environ.setdefault("NCCL_SOCKET_IFNAME", interface)
    os.environ["EDT_ELASTIC_NCCL"] = "1"
    try:
        horovod_init()
    except ValueError:  # Horovod's way to say that its background thread could not start
        return False
    return True
