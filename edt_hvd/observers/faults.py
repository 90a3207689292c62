"""Faults on purpose, at exactly the step that a script names, to see that a job survives them.

==========================  ========================================================================
EDT_FAULTS                  file with the faults (`edt_hvd.observers.fault_script`); the same for all workers
EDT_FAULTS_ALLOCATION       allocation file that ``allocate`` rewrites
EDT_CHECKPOINT_DIR          folder whose checkpoints are damaged and whose disk is filled
==========================  ========================================================================

A worker does to itself what the script says of it. Every fault happens once in the life of a job, also if its
step is repeated or the job restarted: whoever has it happen first makes a file ``<script>.<line>.done`` and
writes into it when, where and to whom it happened.
"""

import contextlib
import errno
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import horovod.torch as hvd

from edt_hvd.errors import FaultError
from edt_hvd.observers.fault_script import (
    Allocate,
    Corrupt,
    Deed,
    Drop,
    Fault,
    FillDisk,
    FreeDisk,
    Hang,
    Kill,
    Place,
    Slow,
    Stop,
    Terminate,
    Unit,
    parse,
)
from edt_hvd.observers.observing import Observer, Values
from edt_hvd.world import world
from edt_hvd.world.assigned_world import AssignedWorld

LARGEST_DISK = 2**26
"""Bytes that may be free on a disk that is to be filled, so that it is not one that others need."""

FILLING = ".filling"
"""Name of the file with which a disk is filled."""

_SIGNALS: dict[type[Deed], signal.Signals] = {
    Kill: signal.SIGKILL,
    Stop: signal.SIGSTOP,
    Terminate: signal.SIGTERM,
}


def from_environment(environ: Mapping[str, str]) -> "Injector | None":
    """The injector that the environment asks for, if it does.

    Raises:
        FaultError: the script makes no sense.
        OSError: the script cannot be read.
    """
    return Injector(Path(environ["EDT_FAULTS"])) if environ.get("EDT_FAULTS") else None


class Injector(Observer):
    """Makes the faults happen that the script has for this worker.

    Steps are counted by the first state that is synced.

    Args:
        script: the file.
    """

    def __init__(self, script: Path) -> None:
        self._script = script
        self._worlds = script.with_name(f"{script.name}.world")
        self._faults = parse(script.read_text())
        self._state: object = None
        self._progress = 0
        self._generation = 0
        self._rank: int | None = None
        self._is_newcomer = True
        self._slow: list[tuple[Fault, Slow]] = []
        self._checkpoints: set[str] = set()
        """Names of those that have been seen."""

    def at_door(self, generation: int) -> None:
        """As in `Observer`."""
        self._resize(generation or self._newest_world(), Place.AT_DOOR)

    def assigned(self, generation: int, rank: int) -> None:
        """As in `Observer`."""
        self._generation, self._rank = generation, rank
        self._resize(generation - 1, Place.IN_RENDEZVOUS)

    def syncing(self) -> None:
        """As in `Observer`."""
        self._resize(self._generation - 1, Place.IN_TRANSFER)

    def synced(self, state: object, progress: int, values: Values) -> None:
        """As in `Observer`."""
        self._rank, self._is_newcomer = hvd.rank(), False
        if self._rank == 0:
            _replace(self._worlds, str(self._generation))
        if self._state is None:
            self._state = state
        if self._state is state:
            self._progress = progress

    def loading(self) -> None:
        """As in `Observer`."""
        self._step(self._progress + 1, Place.IN_LOADER)

    @contextlib.contextmanager
    def micro_batch(self, epoch: int, position: int, data: Any) -> Iterator[None]:
        """As in `Observer`."""
        self._step(self._progress + 1, Place.IN_MICRO_BATCH)
        yield

    def reducing(self) -> None:
        """As in `Observer`."""
        self._step(self._progress + 1, Place.BEFORE_REDUCTION)

    def reduced(self, loss: float) -> None:
        """As in `Observer`."""
        self._step(self._progress + 1, Place.AFTER_REDUCTION)

    def committed(self, state: object, progress: int, values: Values) -> None:
        """As in `Observer`."""
        if state is self._state:
            self._progress = progress
            self._step(progress, Place.AFTER_COMMIT)
            self._count_checkpoints()

    def _step(self, number: int, place: Place) -> None:
        for fault, deed in self._slow:
            if fault.place is place and fault.number < number < fault.number + deed.steps:
                time.sleep(deed.seconds)
        self._look_up(Unit.STEP, number, place)

    def _resize(self, number: int, place: Place) -> None:
        self._look_up(Unit.RESIZE, number, place)

    def _count_checkpoints(self) -> None:
        waiting = next((fault for fault in self._faults if fault.unit is Unit.CHECKPOINT), None)
        if waiting is None:
            return
        before = len(self._checkpoints)
        self._checkpoints.update(path.parent.name for path in _written(_checkpoints(waiting)))
        for number in range(before + 1, len(self._checkpoints) + 1):
            self._look_up(Unit.CHECKPOINT, number, Place.AFTER_COMMIT)

    def _look_up(self, unit: Unit, number: int, place: Place) -> None:
        for fault in self._faults:
            if (fault.unit, fault.number, fault.place) == (unit, number, place) and self._is_meant(fault):
                self._happen(fault)

    def _is_meant(self, fault: Fault) -> bool:
        return self._is_newcomer if fault.rank is None else fault.rank == self._rank

    def _happen(self, fault: Fault) -> None:
        if not self._claim(fault):
            return
        match fault.deed:
            case Kill() | Stop() | Terminate():
                os.kill(os.getpid(), _SIGNALS[type(fault.deed)])
            case Hang():
                while True:
                    time.sleep(1)
            case Drop():
                _drop(fault)
            case Slow():
                self._slow.append((fault, fault.deed))
                time.sleep(fault.deed.seconds)
            case Corrupt(truncate):
                _corrupt(_newest_checkpoint(fault), truncate)
            case FillDisk():
                _fill(fault, _checkpoints(fault) / FILLING)
            case FreeDisk():
                (_checkpoints(fault) / FILLING).unlink(missing_ok=True)
            case Allocate(slots):
                for count in slots:
                    _allocate(_path_in(fault, "EDT_FAULTS_ALLOCATION"), count)

    def _claim(self, fault: Fault) -> bool:
        """Whether the fault has not happened yet, to anybody; it has, from now on."""
        path = self._script.with_name(f"{self._script.name}.{fault.line}.done")
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
    here = world.current()
    if not isinstance(here, AssignedWorld):
        raise FaultError(fault.line, "drop", "a job of edt-launch: no other can go on after that")
    here.abandon()


def _newest_checkpoint(fault: Fault) -> Path:
    """The file with the newest checkpoint's state."""
    folder = _checkpoints(fault)
    found = _written(folder)
    if not found:
        raise FaultError(fault.line, str(folder), "a checkpoint in it by then; name a later step")
    return found[-1]


def _written(folder: Path) -> list[Path]:
    """The state's files of the checkpoints, from the oldest to the newest."""
    return sorted(folder.glob("step-*/state.pt"))


def _corrupt(path: Path, truncate: bool) -> None:
    middle = path.stat().st_size // 2
    if truncate:
        os.truncate(path, middle)
        return
    with path.open("r+b") as file:
        file.seek(middle)
        (byte,) = file.read(1)
        file.seek(middle)
        file.write(bytes([byte ^ 1]))


def _fill(fault: Fault, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(path.parent).free
    if free > LARGEST_DISK:
        expected = f"a small disk of its own, of at most {LARGEST_DISK} bytes; mount a tmpfs there"
        raise FaultError(fault.line, f"{path.parent} with {free} bytes free", expected)
    with path.open("ab", buffering=0) as file:
        try:
            while True:
                file.write(bytes(2**12))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


def _allocate(path: Path, slots: int) -> None:
    """Give the job so many slots on the first of its hosts."""
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
        raise FaultError(fault.line, type(fault.deed).__name__, f"{variable} in the environment")
    return Path(os.environ[variable])
