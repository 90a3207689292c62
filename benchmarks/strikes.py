"""Strikes at a job from outside: signals to its processes, a full disk, files that are cut in the middle.

A disk is full, and a process is stopped, for some seconds. Files are cut when their writer is killed, as by a
power cut: the allocation file with the service, a checkpoint and the events with the launcher. The allocation
file of a job without a service, and the host file of a service, are cut as by an editor that writes in place:
some seconds later all of the file is there.
"""

import contextlib
import errno
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import psutil

ROLES: dict[str, Callable[[str, bool], bool]] = {
    "worker": lambda line, is_worker: is_worker,
    "agent": lambda line, is_worker: "edt_launch.agent" in line and not is_worker,
    "warm server": lambda line, is_worker: "warm server" in line and not is_worker,
    "launcher": lambda line, is_worker: "edt_launch.launcher.command" in line and not is_worker,
    "service": lambda line, is_worker: "edt_launch.cli serve" in line,
}
"""What processes of a job are, by their command line and whether they have reported as workers."""

STOPPED = 2.0
"""Seconds after which a stopped process goes on, unless it was killed meanwhile; and half a file is whole."""

FULL = 3.0
"""Seconds after which a full disk has room again."""

DISK = 64 * 2**20
"""Bytes of the disk that is filled."""


class Target(Protocol):
    """A job that is struck, with the files that it has at the moment."""

    @property
    def events(self) -> Path:
        """Its `events.jsonl`."""

    @property
    def checkpoints(self) -> Path:
        """The folder of its checkpoints."""

    def of(self, role: str) -> list[psutil.Process]:
        """Its processes of a role."""

    def cut_allocation(self) -> bool:
        """Cut its allocation file in the middle; whether there was one."""

    def cut_hosts(self) -> bool:
        """Cut its host file in the middle; whether there was one."""


def send(target: Target, role: str, number: signal.Signals) -> bool:
    """Send a signal to a random process of a role; whether there was one. A stopped one goes on later."""
    victims = target.of(role)
    if not victims:
        return False
    victim = random.choice(victims)
    with contextlib.suppress(psutil.NoSuchProcess):
        victim.send_signal(number)
    if number is signal.SIGSTOP:
        later(STOPPED, lambda: _go_on(victim))
    return True


def cut(path: Path) -> bool:
    """Cut a file in the middle, in place; whether there was one."""
    with contextlib.suppress(FileNotFoundError):
        size = path.stat().st_size
        os.truncate(path, random.randrange(1, size) if size > 1 else 0)
        return True
    return False


def _cut_checkpoint(target: Target) -> bool:
    found = sorted(target.checkpoints.glob("step-*/state.pt"))
    return bool(found) and cut(found[-1]) and send(target, "launcher", signal.SIGKILL)


def _cut_events(target: Target) -> bool:
    """The launcher is killed while it writes a line."""
    launchers = target.of("launcher")
    if not launchers or not target.events.exists():
        return False
    with contextlib.suppress(psutil.NoSuchProcess):
        launchers[0].suspend()
        lines = target.events.read_bytes().splitlines(keepends=True)
        line = lines[-1] if lines else b""
        with contextlib.suppress(OSError), target.events.open("ab") as file:
            file.write(line[: len(line) // 2])
        launchers[0].kill()
    return bool(line)


Strikes = Mapping[str, Callable[[], bool]]
"""By name; each tells whether it has found what it strikes at."""


def strikes_at(target: Target, disk: "SmallDisk | None", roles: Iterable[str]) -> Strikes:
    """All that can happen to a job. Without a disk of its own, nothing is filled."""

    def signalled(role: str, number: signal.Signals) -> Callable[[], bool]:
        return lambda: send(target, role, number)

    found: dict[str, Callable[[], bool]] = {}
    for role in roles:
        found[f"kill {role}"] = signalled(role, signal.SIGKILL)
        found[f"stop {role}"] = signalled(role, signal.SIGSTOP)
    found["cut allocation"] = target.cut_allocation
    found["cut host file"] = target.cut_hosts
    found["cut checkpoint"] = lambda: _cut_checkpoint(target)
    found["cut events"] = lambda: _cut_events(target)
    if disk is not None:
        found["full disk"] = disk.fill_for_a_while
    return found


def strike(strikes: Strikes, name: str) -> str | None:
    """Strike, in another way if there is nothing to strike at; the name of what has happened."""
    others = [other for other in strikes if other != name]
    return next((each for each in (name, *random.sample(others, len(others))) if strikes[each]()), None)


def later(seconds: float, do: Callable[[], object]) -> threading.Timer:
    """Do something in a thread of its own, some seconds from now."""
    timer = threading.Timer(seconds, do)
    timer.start()
    return timer


def _go_on(process: psutil.Process) -> None:
    with contextlib.suppress(psutil.NoSuchProcess):
        process.resume()


@dataclass
class SmallDisk:
    """A folder on a file system of its own, small enough to be filled."""

    folder: Path

    def __post_init__(self) -> None:
        self._filling = self.folder / "filling"
        self._full_until = 0.0

    @property
    def is_full(self) -> bool:
        """Whether there may be no room; also just after it was freed."""
        return time.monotonic() < self._full_until

    def fill_for_a_while(self) -> bool:
        """Leave no room, for `FULL` seconds; False if it is full already."""
        if self.is_full:
            return False
        self._full_until = time.monotonic() + FULL + 1
        later(FULL, lambda: self._filling.unlink(missing_ok=True))
        try:
            with self._filling.open("ab", buffering=0) as file:
                while True:
                    file.write(bytes(2**16))
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
        return True


def cannot_mount() -> str | None:
    """Why there can be no small disk here; None if there can."""
    with tempfile.TemporaryDirectory() as folder:
        if error := _mount(Path(folder)):
            return f"no full disk among the strikes: {error}"
        subprocess.run(["umount", folder], check=True)
    return None


@contextlib.contextmanager
def small_disk(folder: Path, is_kept: bool) -> Iterator[SmallDisk]:
    """A new folder on a small disk; what it has stays in the folder in the end, if it `is_kept`.

    Raises:
        OSError: it cannot be mounted.
    """
    folder.mkdir(parents=True)
    if error := _mount(folder):
        raise OSError(error)
    kept = folder.with_name(f"{folder.name}.kept")
    try:
        yield SmallDisk(folder)
    finally:
        if is_kept:
            subprocess.run(["cp", "-a", folder, kept], check=False)
        subprocess.run(["umount", "--lazy", folder], check=True)
        if is_kept:
            folder.rmdir()
            kept.rename(folder)


def _mount(folder: Path) -> str:
    """Mount a small disk; why that is not possible, else empty."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return "mounting a small disk needs root, and mount"
    command = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "edt-small-disk", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr.strip()
