"""Where this worker stands: rank, size and device, and how it gets into the world and out of it.

A *world* is one set of workers joined by Horovod; every re-formation is a new *generation*. How a
process comes by its world depends on who started it:

=========  ==============================================  =========================================
started by  recognised by                                  the world
=========  ==============================================  =========================================
edt-launch  ``EDT_COORDINATOR``                            assigned by the launcher, again and again
horovodrun  ``HOROVOD_GLOO_RENDEZVOUS_ADDR``               Horovod's own, fixed or elastic
mpirun      ``OMPI_COMM_WORLD_SIZE`` and its like          all of MPI_COMM_WORLD, fixed
nobody      none of them                                   this process alone
=========  ==============================================  =========================================
"""

import contextlib
import importlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import horovod.torch as hvd
import torch
from horovod.common.exceptions import HorovodInternalError

from edt_hvd.errors import NotInitializedError
from edt_hvd.observers import observing
from edt_hvd.world import connections, departure, notices, pulse, stages
from edt_hvd.world.control import Assignment, Launcher
from edt_hvd.world.determinism import make_deterministic
from edt_hvd.world.stages import Stage
from edt_hvd.world.standby import Standby

_MPI_VARIABLES = ("OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
_HOROVOD_VARIABLES = ("HOROVOD_GLOO_RENDEZVOUS_ADDR",)
_JOIN_ATTEMPTS = 10

_horovod_init: Callable[..., None] = hvd.init


class FixedWorld:
    """A world that whoever started the process has fixed: one process, mpirun or horovodrun."""

    generation = 0
    launcher: Launcher | None = None
    horovod_elastic = os.environ.get("HOROVOD_ELASTIC") == "1"

    def start(self) -> None:
        """Initialize Horovod for this world."""
        if hvd.is_initialized():
            return
        if _started_by(os.environ, _MPI_VARIABLES + _HOROVOD_VARIABLES):
            _horovod_init()
        else:
            with _without_mpi():
                _horovod_init()

    def join(self) -> None:
        """The world is there already."""

    @property
    def max_size(self) -> int:
        """The number of workers, which is fixed."""
        return int(hvd.size())

    @property
    def stop_wanted(self) -> bool:
        """Nobody stops this world."""
        return False


@contextlib.contextmanager
def _without_mpi() -> Iterator[None]:
    """For a process that is alone, for which Horovod would start a whole MPI runtime.

    Afterwards the environment is as it was: children may be workers of a world.
    """
    variables = {"HOROVOD_CONTROLLER": "gloo", "HOROVOD_CPU_OPERATIONS": "gloo"}.items()
    added = [name for name, value in variables if os.environ.setdefault(name, value) is value]
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]


class AssignedWorld:
    """A world that the launcher assigns, generation by generation.

    Nothing here blocks before `join`: a newcomer imports, builds its model and reaches the door of
    the elastic function while the others still train.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.launcher = Launcher(environ["EDT_COORDINATOR"], environ["EDT_TOKEN"], int(environ["EDT_WORKER"]))
        self.max_size = int(environ["EDT_MAX_NP"])
        self.generation = 0
        self.finished = False
        """Whether an elastic function has returned: no more workers come or go."""
        self.save_state: Callable[[], None] = lambda: None
        """Called when this worker leaves as the last that has the state."""
        self.assigned_at = 0.0
        """When this worker got its place in the present world, by the monotonic clock."""
        self._lock = threading.Lock()
        self._connections = connections.NONE
        self._forming: tuple[int, connections.Connections] | None = None
        self._broken_generation = 0

    def start(self) -> None:
        """Connect to the launcher, and let SIGTERM be a notice that this worker is to leave."""
        self.launcher.on_cut(self._note_broken)
        self.launcher.connect()
        pulse.start(self.launcher)
        notices.listen()

    def join(self) -> None:
        """Wait at the door for a first place in a world, unless this worker has one."""
        if self.generation == 0:
            self.rejoin(progress=0)

    def abandon(self) -> None:
        """A member of this world is lost: let the others know, who may be waiting for this worker."""
        connections.cut(self._connections)

    def rejoin(self, progress: int) -> None:
        """Leave the present world, if any, and wait for a place in the next one.

        Args:
            progress: how far this worker's state is, in commits; the farthest one becomes rank 0.

        Raises:
            SystemExit: with code 0, when the launcher does not need this worker any more.
        """
        for _ in range(_JOIN_ATTEMPTS):
            stages.enter(Stage.FORMING)
            hvd.shutdown()
            stages.enter(Stage.OUTSIDE)
            for observer in observing.observers():
                observer.at_door(self.generation)
            assignment = self._wait_at_door(progress)
            if assignment is None:
                if self.launcher.must_save:
                    self.save_state()
                self.launcher.close()
                departure.hasten()
                raise SystemExit(0)
            stages.enter(Stage.FORMING)
            self.assigned_at = time.monotonic()
            for observer in observing.observers():
                observer.assigned(assignment.generation, assignment.rank)
            if self._form(assignment):
                self.generation = assignment.generation
                return
            self.abandon()
        raise HorovodInternalError(f"no world could be formed in {_JOIN_ATTEMPTS} attempts")

    def _wait_at_door(self, progress: int) -> Assignment | None:
        """Wait for the next place; tell what the wait for the first one has cost."""
        standby = Standby.begin() if self.generation == 0 else None
        assignment = self.launcher.wait_at_door(progress)
        if standby is not None and assignment is not None:
            self.launcher.send("standby", **standby.cost(time.monotonic(), time.process_time()))
        return assignment

    def _form(self, assignment: Assignment) -> bool:
        """Enter the assigned world; False when a member did not make it."""
        with self._lock:
            if self._broken_generation >= assignment.generation:
                return False
            before = connections.open_now()
            self._forming = (assignment.generation, before)
        entered = _enter(assignment)
        with self._lock:
            self._connections = connections.opened_since(before)
            self._forming = None
        return entered

    def _note_broken(self, generation: int) -> None:
        """A world has lost a member: whoever waits in it must not wait for a timeout."""
        with self._lock:
            self._broken_generation = max(generation, self._broken_generation)
            if self._forming is not None and generation >= self._forming[0]:
                connections.break_off(connections.opened_since(self._forming[1]))
            elif self._forming is None and generation >= self.generation:
                connections.cut(self._connections)

    def finish(self) -> None:
        """Training is over for this worker: whatever membership is announced, it takes no part in it."""
        notices.stop_listening()
        stages.enter(Stage.OUTSIDE)
        self.finished = True
        self.launcher.send("done")

    def wait_for_announcement(self) -> None:
        """Wait until the launcher announces a membership newer than the one in force, or is lost."""
        self.launcher.wait_until_wanted(self.generation + 1)

    @property
    def stop_wanted(self) -> bool:
        """Whether the launcher has announced a membership newer than the one in force."""
        return self.launcher.wanted_generation > self.generation


def _enter(assignment: Assignment) -> bool:
    """Form the assigned world with the other members; False when one of them did not make it."""
    for name in ("rank", "size", "local_rank", "local_size", "cross_rank", "cross_size"):
        os.environ[f"HOROVOD_{name.upper()}"] = str(getattr(assignment, name))
    os.environ["HOROVOD_GLOO_RENDEZVOUS_PORT"] = str(assignment.port)
    try:
        _horovod_init()
    except ValueError:  # Horovod's way to say that its background thread could not start
        return False
    return True


_world: FixedWorld | AssignedWorld | None = None


def _started_by(environ: Mapping[str, str], variables: tuple[str, ...]) -> bool:
    return any(name in environ for name in variables)


def init(*, deterministic: bool = False) -> None:
    """Initialize the library: connect to the launcher, if there is one, and bind this worker's device.

    May be called any number of times. Under edt-launch it returns at once, before the other workers
    are known: whatever needs the world (`rank`, `size`, a collective, the elastic function) waits where
    it is called.

    Args:
        deterministic: have torch compute the same bits for the same work, on the same kind of machine:
            deterministic operators (one that has none raises when it is used) and OMP_NUM_THREADS threads
            a worker, or one. Without it a worker has its share of the host's cores.

    Raises:
        CoordinatorLostError: started by edt-launch, but the launcher cannot be reached.
        ValueError: deterministic, with an OMP_NUM_THREADS that is no positive number.
    """
    global _world
    if deterministic:
        make_deterministic()
    if _world is not None:
        return
    world = AssignedWorld(os.environ) if "EDT_COORDINATOR" in os.environ else FixedWorld()
    world.start()
    _world = world
    if not deterministic:
        _share_cores()
    if torch.cuda.is_available():
        torch.cuda.set_device(device())


def _share_cores() -> None:
    """Give every worker its share of the host's cores, unless OMP_NUM_THREADS says otherwise.

    The share follows from the most workers that the host may have, so that it stays the same at every size.
    """
    if "OMP_NUM_THREADS" in os.environ:
        return
    world = current()
    assigned = isinstance(world, AssignedWorld)
    neighbours = int(os.environ["EDT_LOCAL_NP"]) if assigned else int(hvd.local_size())
    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // neighbours))


def current() -> FixedWorld | AssignedWorld:
    """The world as it is, joined or not.

    Raises:
        NotInitializedError: `init` has not been called.
    """
    if _world is None:
        raise NotInitializedError("this call")
    return _world


def _joined(call: str) -> FixedWorld | AssignedWorld:
    if _world is None:
        raise NotInitializedError(call)
    _world.join()
    return _world


def rank() -> int:
    """This worker's number in the world, 0 to `size() - 1`. Waits until the worker has joined one."""
    _joined("edt_hvd.rank()")
    return int(hvd.rank())


def size() -> int:
    """The number of workers in the world now. Waits until this worker has joined one."""
    _joined("edt_hvd.size()")
    return int(hvd.size())


def local_rank() -> int:
    """This worker's number among those on its host. Waits until the worker has joined a world."""
    _joined("edt_hvd.local_rank()")
    return int(hvd.local_rank())


def local_size() -> int:
    """The number of workers on this host now. Waits until this worker has joined a world."""
    _joined("edt_hvd.local_size()")
    return int(hvd.local_size())


def is_coordinator() -> bool:
    """Whether this worker is the one that prints, saves and reports (rank 0)."""
    return rank() == 0


def max_size() -> int:
    """The largest number of workers this job may have: ``--max-np``, or `size()` when that is fixed."""
    return current().max_size


def leave(reason: str = "leave()") -> bool:
    """Give up this worker's slot: it finishes its step, the others go on without it, it exits with code 0.

    For scripts that watch for preemption themselves; SIGTERM has the same effect, unless the script handles
    it. May be called from any thread, any number of times, and returns at once. The allocator decides whether
    the job gets another slot; the one that was left is tried again after a minute if it is still allocated.

    Args:
        reason: what to tell the user.

    Returns:
        Whether there is a launcher that can go on without this worker. Under python, mpirun and horovodrun
        the world is not ours to change: nothing happens, and the answer is False.

    Raises:
        NotInitializedError: `init` has not been called.
    """
    if not isinstance(current(), AssignedWorld):
        return False
    notices.give(reason)
    return True


def membership() -> int:
    """The generation of the world in force; another number means other ranks and another size."""
    return _joined("edt_hvd.membership()").generation


def device() -> torch.device:
    """The device this worker computes on; it does not change while the worker lives.

    With a device in the allocation only that one is visible, so it is ``cuda:0``; otherwise the slot's
    index on the host chooses. Without CUDA it is the CPU.

    Raises:
        NotInitializedError: `init` has not been called.
    """
    world = current()
    if not torch.cuda.is_available():
        return torch.device("cpu")
    index = int(os.environ["EDT_SLOT"]) if isinstance(world, AssignedWorld) else int(hvd.local_rank())
    return torch.device("cuda", index % torch.cuda.device_count())


def adopt_horovod() -> None:
    """Let a script's own ``hvd.init()`` join the launcher's world instead of forming Horovod's.

    Scripts written for Horovod call it before anything else; under edt-launch it has to wait at the
    door like `rank` and `size` do. What a script imports only when it makes its first optimizer is imported
    before that, so that the others need not wait for it. Nothing changes when another program started the
    process.
    """
    if "EDT_COORDINATOR" not in os.environ:
        return

    def joining_init(*_: Any, **__: Any) -> None:
        init()
        importlib.import_module("torch._dynamo")
        current().join()

    _replace_horovods_init(joining_init)


def release_horovod() -> None:
    """Undo `adopt_horovod`, for a script that has nothing to do with this library."""
    _replace_horovods_init(_horovod_init)


def _replace_horovods_init(init: Callable[..., None]) -> None:
    for module in (hvd, hvd.mpi_ops, hvd.elastic):
        module.init = init
