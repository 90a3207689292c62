"""Elastic jobs of three systems behind one interface: started, resized, hurt, watched and ended."""

import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import psutil

SCRIPTS = Path(__file__).parent / "resize"
MARK = "RESIZE_BENCHMARK_RUN"
"""Environment variable by which every process of a run is found."""

POLL = 0.1


@dataclass(frozen=True)
class Step:
    """One worker's record of an optimizer step: unix time in s, its number, size of the world, process."""

    time: float
    number: int
    size: int
    worker: int


class NotResizedError(Exception):
    """A job ended, or did not do within its limit what it was waited for."""


class Endable(Protocol):
    """What may end while something is waited for."""

    def ended(self) -> str | None:
        """How it ended, or None while it runs."""


class Job(Endable, Protocol):
    """A system's way to run its training script in a folder with a number of workers that changes."""

    def start(self, size: int) -> None:
        """Start the job."""

    def resize(self, size: int) -> None:
        """Ask for another number of workers, and return at once."""

    def leavers(self) -> list[str]:
        """How removed workers ended, as far as is known."""


@dataclass
class Place:
    """Where a run keeps its files, and what its scripts are given."""

    folder: Path
    script_options: list[str]
    environment: dict[str, str]

    def spawn(self, name: str, *command: object) -> subprocess.Popen[bytes]:
        """Start a command in its own session, with its output in the file `name`.log."""
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self.environment,
                start_new_session=True,
            )

    def write(self, name: str, text: str) -> Path:
        """Replace a file atomically."""
        beside = self.folder / f"{name}.new"
        beside.write_text(text)
        return beside.replace(self.folder / name)

    def steps(self) -> list[Step]:
        """All that the workers have written down, lines that are not yet whole left out."""
        found = []
        for file in self.folder.glob("trace.*"):
            worker = int(file.suffix[1:])
            for line in file.read_text().splitlines(keepends=True):
                if line.endswith("\n"):
                    moment, number, size = line.split()
                    found.append(Step(float(moment), int(number), int(size), worker))
        return found


def exit_text(code: int | None) -> str | None:
    """`exit 1` and the like."""
    return None if code is None else f"exit {code}" if code >= 0 else signal.Signals(-code).name


class EdtJob:
    """`edt-launch`, told by its allocation file.

    Args:
        place: where the run keeps its files.
        script: what to train.
        options: further options of edt-launch.
    """

    network: tuple[str, ...] = ("--network-interface", "lo")

    def __init__(
        self, place: Place, script: Path = SCRIPTS / "train_edt.py", options: Sequence[object] = ()
    ) -> None:
        self._place = place
        self._script = script
        self._options = options
        self._generation = 0

    def start(self, size: int) -> None:
        """Write the allocation and start edt-launch."""
        self.resize(size)
        folder = self._place.folder
        self._process = self._place.spawn(
            "job",
            *(sys.executable, "-m", "edt_launch.launcher.command", "--min-np", 1, "--max-np", 4),
            *(*self.network, "--allocation", folder / "allocation"),
            *("--output-dir", folder / "out", *self._options),
            *(self._script, *self._place.script_options),
        )

    def resize(self, size: int) -> None:
        """Replace the allocation."""
        self._generation += 1
        text = f"# edt allocation v1 generation={self._generation}\nlocalhost:{size}\n"
        self._place.write("allocation", text)

    def ended(self) -> str | None:
        """How edt-launch ended."""
        return exit_text(self._process.poll())

    def leavers(self) -> list[str]:
        """From the job's events."""
        return [f"exit {event.get('exit_code', 0)}" for event in self.events("left", "failed")]

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        """What the job has told of these kinds so far."""
        path = self._place.folder / "out" / "events.jsonl"
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if event["event"] in kinds]


class HorovodJob:
    """`horovodrun` in elastic mode, told by its host-discovery script."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def start(self, size: int) -> None:
        """Write the discovery script and start horovodrun."""
        self.resize(size)
        slots = shlex.quote(str(self._place.folder / "slots"))
        discovery = self._place.write("discover", f"#!/bin/sh\ncat {slots}\n")
        discovery.chmod(0o755)
        self._process = self._place.spawn(
            "job",
            *(Path(sys.executable).with_name("horovodrun"), "-np", size, "--min-np", 2, "--max-np", 4),
            *("--network-interface", "lo", "--host-discovery-script", discovery),
            *(sys.executable, SCRIPTS / "train_horovod.py", *self._place.script_options),
        )

    def resize(self, size: int) -> None:
        """Let the discovery script print another number of slots."""
        self._place.write("slots", f"localhost:{size}\n")

    def ended(self) -> str | None:
        """How horovodrun ended."""
        return exit_text(self._process.poll())

    def leavers(self) -> list[str]:
        """From what horovodrun prints when a worker ends."""
        log = (self._place.folder / "job.log").read_text(errors="replace")
        return [f"exit {code}" for code in re.findall(r"exit with status code (-?\d+)", log)]


class TorchrunJob:
    """One torchrun agent for each worker; more agents are started, or the last ones stopped."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._agents: list[subprocess.Popen[bytes]] = []
        self._stopped: list[subprocess.Popen[bytes]] = []
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port: int = probe.getsockname()[1]

    def start(self, size: int) -> None:
        """Start the first agent, which serves the rendezvous, and then the others."""
        self.resize(1)
        wait_for(self._is_serving, 60, self, "serve its rendezvous")
        self.resize(size)

    def _is_serving(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def resize(self, size: int) -> None:
        """Start agents, or stop the last ones."""
        while len(self._agents) < size:
            self._agents.append(self._agent(len(self._agents)))
        for agent in self._agents[size:]:
            agent.terminate()
        self._stopped += self._agents[size:]
        del self._agents[size:]

    def _agent(self, number: int) -> subprocess.Popen[bytes]:
        return self._place.spawn(
            f"agent{number}",
            *(sys.executable, "-m", "torch.distributed.run", "--nnodes", "1:4", "--nproc-per-node", 1),
            *("--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{self._port}", "--rdzv-id", "resize"),
            *("--rdzv-conf", "last_call_timeout=1", "--local-addr", "127.0.0.1", "--max-restarts", 100),
            *(SCRIPTS / "train_torchrun.py", *self._place.script_options),
        )

    def ended(self) -> str | None:
        """How the first agent ended that was not told to."""
        codes = [code for agent in self._agents if (code := agent.poll()) is not None]
        return f"agent {exit_text(codes[0])}" if codes else None

    def leavers(self) -> list[str]:
        """How the agents ended that were stopped."""
        return [f"agent {exit_text(code)}" for agent in self._stopped if (code := agent.poll()) is not None]


SYSTEMS: dict[str, tuple[str, Callable[[Place], Job]]] = {
    "edt": ("EDT", EdtJob),
    "horovod": ("plain Horovod", HorovodJob),
    "torchrun": ("torchrun", TorchrunJob),
}


def wait_for(condition: Callable[[], bool], limit: float, job: Endable, what: str) -> None:
    """Wait until the condition holds.

    Raises:
        NotResizedError: the job has ended, or `limit` seconds have passed.
    """
    deadline = time.monotonic() + limit
    while not condition():
        if ended := job.ended():
            raise NotResizedError(f"ended with {ended} before it did {what}")
        if time.monotonic() > deadline:
            raise NotResizedError(f"did not {what} within {limit:g} s")
        time.sleep(POLL)


def end(mark: str) -> None:
    """Kill every process of a run, wherever it has got to."""
    for _ in range(10):
        mine = [process for process in psutil.process_iter() if environment(process).get(MARK) == mark]
        for process in mine:
            try:
                process.kill()
            except psutil.NoSuchProcess:
                continue
        if not mine or not psutil.wait_procs(mine, timeout=1)[1]:
            return
    raise SystemExit(f"processes do not end: {[process.pid for process in mine]}")


def environment(process: psutil.Process) -> dict[str, str]:
    """A process's environment; empty for one that is gone, a zombie, or someone else's."""
    try:
        return process.environ()
    except (psutil.NoSuchProcess, psutil.AccessDenied, OSError):
        return {}
