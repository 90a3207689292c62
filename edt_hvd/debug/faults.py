"""The fault injector: faults at exactly the step that a script names, to show that a job survives them.

==========================  ========================================================================
EDT_FAULTS                  file with the faults (`edt_hvd.debug.fault_script`); the same for all workers
EDT_FAULTS_ALLOCATION       allocation file that ``allocate`` rewrites
EDT_CHECKPOINT_DIR          folder whose checkpoints are damaged and whose disk is filled
==========================  ========================================================================

Each worker injects its own faults. A fault happens once in a job, also if its step is repeated or the job is
restarted: the first worker to reach it creates the file ``<script>.<row>.done`` and writes the time, the
generation, its rank and its process id into it.
"""

import codecs
import contextlib
import errno
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import horovod.torch as hvd
from typing_extensions import override

from edt_hvd.debug.fault_script import MAX_BYTES, Action, Fault, Point, Unit, parse
from edt_hvd.errors import FaultError
from edt_hvd.observing import Observer, Values
from edt_hvd.world import world
from edt_hvd.world.assigned_world import AssignedWorld

LARGEST_DISK = 2**26
"""Bytes that may be free on a disk that is to be filled, so that it is not one that others need."""

FILLING = ".filling"
"""Name of the file with which a disk is filled."""

_SIGNALS = {
    Action.KILL: signal.SIGKILL,
    Action.STOP: signal.SIGSTOP,
    Action.TERMINATE: signal.SIGTERM,
}


class Injector(Observer):
    """Injects the faults that a script has for this worker.

    Steps are counted by the first state that is synced.

    Args:
        script: the file.

    Raises:
        FaultError: the script is invalid, or cannot be read.
    """

    def __init__(self, script: Path) -> None:
        self._script = script.absolute()  # the training script may go to another directory
        self._worlds = self._script.with_name(f"{script.name}.world")
        try:
            with script.open("rb") as file:
                data = file.read(MAX_BYTES + 1)
            is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
            self._faults = parse(data.decode("utf-16" if is_utf16 else "utf-8-sig").replace("\r\n", "\n"))
        except (OSError, UnicodeDecodeError) as error:
            raise FaultError("the fault script", str(error), "a file of TOML that can be read") from error
        self._state: object = None
        self._progress = 0
        self._generation = 0
        self._rank: int | None = None
        self._is_newcomer = True
        self._slow: list[Fault] = []
        self._checkpoints: set[str] = set()
        """Names of those that have been seen."""

    @override
    def at_rendezvous(self, generation: int) -> None:
        self._look_up(Unit.RESIZE, generation or self._newest_world(), Point.WAITING)

    @override
    def assigned(self, generation: int, rank: int) -> None:
        self._generation, self._rank = generation, rank
        self._look_up(Unit.RESIZE, generation - 1, Point.RENDEZVOUS)

    @override
    def syncing(self) -> None:
        self._look_up(Unit.RESIZE, self._generation - 1, Point.TRANSFER)

    @override
    def synced(self, state: object, progress: int, values: Values) -> None:
        self._rank, self._is_newcomer = hvd.rank(), False
        if self._rank == 0:
            _replace(self._worlds, str(self._generation))
        if self._state is None:
            self._state = state
        if self._state is state:
            self._progress = progress

    @override
    def loading(self) -> None:
        self._step(self._progress + 1, Point.LOADER)

    @override
    @contextlib.contextmanager
    def micro_batch(self, epoch: int, position: int, data: Any) -> Iterator[None]:
        self._step(self._progress + 1, Point.MICRO_BATCH)
        yield

    @override
    def reducing(self) -> None:
        self._step(self._progress + 1, Point.BEFORE_REDUCTION)

    @override
    def reduced(self, loss: float) -> None:
        self._step(self._progress + 1, Point.AFTER_REDUCTION)

    @override
    def committed(self, state: object, progress: int, values: Values) -> None:
        if state is self._state:
            self._progress = progress
            self._step(progress, Point.AFTER_COMMIT)
            self._count_checkpoints()

    def _step(self, number: int, point: Point) -> None:
        for fault in self._slow:
            if fault.point is point and fault.number < number < fault.number + fault.steps:
                time.sleep(fault.seconds)
        self._look_up(Unit.STEP, number, point)

    def _count_checkpoints(self) -> None:
        waiting = next((fault for fault in self._faults if fault.unit is Unit.CHECKPOINT), None)
        if waiting is None:
            return
        before = len(self._checkpoints)
        self._checkpoints.update(path.parent.name for path in _written(_checkpoints(waiting)))
        for number in range(before + 1, len(self._checkpoints) + 1):
            self._look_up(Unit.CHECKPOINT, number, Point.AFTER_COMMIT)

    def _look_up(self, unit: Unit, number: int, point: Point) -> None:
        for fault in self._faults:
            if (fault.unit, fault.number, fault.point) == (unit, number, point) and self._is_meant(fault):
                self._happen(fault)

    def _is_meant(self, fault: Fault) -> bool:
        return self._is_newcomer if fault.rank is None else fault.rank == self._rank

    def _happen(self, fault: Fault) -> None:
        if not self._claim(fault):
            return
        match fault.action:
            case Action.KILL | Action.STOP | Action.TERMINATE:
                os.kill(os.getpid(), _SIGNALS[fault.action])
            case Action.HANG:
                while True:
                    time.sleep(1)
            case Action.DROP:
                _drop(fault)
            case Action.SLOW:
                self._slow.append(fault)
                time.sleep(fault.seconds)
            case _:
                _TO_JOB[fault.action](fault)

    def _claim(self, fault: Fault) -> bool:
        """Mark the fault as done; False if it was already."""
        path = self._script.with_name(f"{self._script.name}.{fault.row}.done")
        about = {"time": time.time(), "generation": self._generation, "rank": self._rank, "pid": os.getpid()}
        try:
            with path.open("x") as file:
                file.write(json.dumps(about) + "\n")
        except FileExistsError:
            return False
        return True

    def _newest_world(self) -> int:
        """Generation of the last world that has been formed; 0 if there was none."""
        try:
            return int(self._worlds.read_text())
        except FileNotFoundError:
            return 0


def _drop(fault: Fault) -> None:
    current = world.current()
    if not isinstance(current, AssignedWorld):
        raise FaultError(fault.name, "action = drop", "a job of edt-launch: no other can go on after that")
    current.abandon()


def _newest_checkpoint(fault: Fault) -> Path:
    folder = _checkpoints(fault)
    found = _written(folder)
    if not found:
        raise FaultError(fault.name, str(folder), "a checkpoint in it by then; name a later step")
    return found[-1]


def _written(folder: Path) -> list[Path]:
    """The state's files of the checkpoints, from the oldest to the newest."""
    return sorted(folder.glob("step-*/state.pt"))


def _corrupt(fault: Fault) -> None:
    path = _newest_checkpoint(fault)
    middle = path.stat().st_size // 2
    with path.open("r+b") as file:
        file.seek(middle)
        (byte,) = file.read(1)
        file.seek(middle)
        file.write(bytes([byte ^ 1]))


def _truncate(fault: Fault) -> None:
    path = _newest_checkpoint(fault)
    os.truncate(path, path.stat().st_size // 2)


def _fill(fault: Fault) -> None:
    path = _checkpoints(fault) / FILLING
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if free > LARGEST_DISK:
        expected = f"a small disk of its own, of at most {LARGEST_DISK} bytes; mount a tmpfs there"
        raise FaultError(fault.name, f"{path.parent} with {free} bytes free", expected)
    with path.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(2**12))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def _free(fault: Fault) -> None:
    (_checkpoints(fault) / FILLING).unlink(missing_ok=True)


def _allocate(fault: Fault) -> None:
    """Give the job so many slots on the first of its hosts, one number after the other."""
    path = _path_in(fault, "EDT_FAULTS_ALLOCATION")
    for slots in fault.slots:
        found = re.match(r"# edt allocation v1 generation=(\d+)\n([^:]+):", path.read_text())
        if found is None:
            raise ValueError(f"{path}: expected an allocation file whose second line is host:slots")
        _replace(path, f"# edt allocation v1 generation={int(found[1]) + 1}\n{found[2]}:{slots}\n")


def _replace(path: Path, text: str) -> None:
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.write_text(text)
    beside.replace(path)


def _checkpoints(fault: Fault) -> Path:
    return _path_in(fault, "EDT_CHECKPOINT_DIR")


def _path_in(fault: Fault, variable: str) -> Path:
    if not os.environ.get(variable):
        raise FaultError(fault.name, f"action = {fault.action!s}", f"{variable} in the environment")
    return Path(os.environ[variable])


_TO_JOB: Mapping[Action, Callable[[Fault], None]] = {
    Action.CORRUPT_CHECKPOINT: _corrupt,
    Action.TRUNCATE_CHECKPOINT: _truncate,
    Action.FILL_DISK: _fill,
    Action.FREE_DISK: _free,
    Action.ALLOCATE: _allocate,
}
"""What happens to the whole job."""
