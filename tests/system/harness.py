"""Real jobs: edt-launch, agents, workers, sockets. Nothing here is simulated."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import psutil
import torch

from programs.traced import BATCH, SAMPLES

BIN = Path(sys.executable).parent
MPIRUN = [BIN / "mpirun", "--oversubscribe", "-np"]
MPI_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "HOROVOD_CONTROLLER": "mpi",
    "HOROVOD_CPU_OPERATIONS": "mpi",
}
PROGRAMS = Path(__file__).parent / "programs"
TRACED = PROGRAMS / "traced.py"
FAKE_WORKER = Path(__file__).parents[1] / "edt_launch" / "launcher" / "fake_worker.py"
"""Takes part in worlds without torch, and therefore starts quickly."""

POLL = 0.1
"""Seconds between two looks at what a job has written; limits are pytest's own timeout."""

SLOW = ("--delay", 0.2)
"""Of traced.py: it trains until `ElasticJob.end`, and takes its time."""

STEPS = -(-SAMPLES // BATCH)
"""Of an epoch of traced.py."""

PATIENCE = 120.0
"""Seconds for which a test waits for what is to end by itself."""

SURVEY = 0.5
"""Seconds between two looks at a job's processes, each of which reads all processes of the machine."""


def describe(process: psutil.Process) -> str:
    with process.oneshot():
        return f"{process.pid}, child of {process.ppid()}: {' '.join(process.cmdline())}"


class ElasticJob:
    """A job under edt-launch whose allocation file the test rewrites."""

    def __init__(self, folder: Path, max_np: int = 4, min_np: int = 1) -> None:
        self.folder = folder
        self.out = folder / "out"
        self.results = folder / "results"
        self.results.mkdir(parents=True)
        self.allocation = folder / "allocation"
        self.sizes = ["--min-np", str(min_np), "--max-np", str(max_np)]
        self.generation = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.family: set[psutil.Process] = set()
        self._surveyed = 0.0
        self._rows: dict[Path, tuple[int, list[dict[str, Any]]]] = {}

    def allocate(self, slots: int, host: str = "localhost", devices: str = "") -> None:
        """Replace the allocation file as an allocator does."""
        self.generation += 1
        self.write_allocation(f"# edt allocation v1 generation={self.generation}\n{host}:{slots}{devices}\n")

    def write_allocation(self, text: str) -> None:
        beside = self.allocation.with_suffix(".new")
        beside.write_text(text)
        beside.rename(self.allocation)

    def start(
        self, script: Path, *args: object, options: tuple[str, ...] = (), prefix: Iterable[str] = ()
    ) -> "ElasticJob":
        command = [*prefix, sys.executable, "-m", "edt_launch.launcher.command", *self.sizes, *options]
        if self.allocation.exists():
            command += ["--allocation", str(self.allocation)]
        command += ["--output-dir", str(self.out), str(script), *map(str, args)]
        with (self.folder / "stdout").open("wb") as stdout, (self.folder / "stderr").open("wb") as stderr:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr)
        return self

    @property
    def stdout(self) -> str:
        return (self.folder / "stdout").read_text()

    @property
    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        path = self.out / "events.jsonl"
        events = self._read(path) if path.exists() else []
        return [event for event in events if not kinds or event["event"] in kinds]

    def trace(self) -> list[dict[str, Any]]:
        """What the workers of traced.py have written down, in no order."""
        return [row for path in self.results.glob("trace.*.jsonl") for row in self._read(path)]

    def _read(self, path: Path) -> list[dict[str, Any]]:
        """The lines of a file that grows; waiting for one asks again and again, and each is parsed once."""
        offset, rows = self._rows.get(path, (0, []))
        with path.open("rb") as file:
            file.seek(offset)
            new = file.read()
        lines = new[: new.rfind(b"\n") + 1]
        self._rows[path] = offset + len(lines), [*rows, *map(json.loads, lines.splitlines())]
        return self._rows[path][1]

    def until(self, condition: Callable[[], object], running: bool = True) -> None:
        """Wait for a condition; a job that has ended early fails the test with what it printed."""
        while not condition():
            assert self.process is not None
            if running:
                assert self.process.poll() is None, f"ended early:\n{self.stdout}\n{self.stderr}"
            if time.monotonic() - self._surveyed >= SURVEY:
                self.remember()
            time.sleep(POLL)

    def remember(self) -> None:
        """Note every process of the job, to see later that all of them are gone."""
        assert self.process is not None
        self._surveyed = time.monotonic()
        with contextlib.suppress(psutil.NoSuchProcess):
            self.family.update(psutil.Process(self.process.pid).children(recursive=True))
        for event in self.events("ready", "warm_server"):  # forked workers descend from nobody
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(event["pid"])
                if process.create_time() <= event["time"]:  # not one that has got the number of a dead one
                    self.family.add(process)

    def worker(self, rank: int) -> psutil.Process:
        """The process of the worker that has that rank in the latest world."""
        serial = next(w for w, r in self.events("world")[-1]["ranks"].items() if r == rank)
        ready = [event for event in self.events("ready") if event["worker"] == int(serial)]
        return psutil.Process(ready[-1]["pid"])

    def agent(self) -> psutil.Process:
        """The agent of this machine."""
        assert self.process is not None
        (agent,) = psutil.Process(self.process.pid).children()
        return agent

    def size(self) -> int | None:
        worlds = self.events("world")
        return worlds[-1]["size"] if worlds else None

    def worlds_since_start(self) -> list[int]:
        """Sizes of the worlds since the latest start of edt-launch."""
        sizes: list[int] = []
        for event in self.events("begun", "world"):
            sizes = [*sizes, event["size"]] if event["event"] == "world" else []
        return sizes

    def until_size(self, size: int) -> None:
        self.until(lambda: self.size() == size)

    def steps(self) -> int:
        return len({(row["epoch"], row["step"]) for row in self.trace()})

    def until_steps(self, count: int) -> None:
        self.until(lambda: self.steps() >= count)

    def until_more_steps(self, count: int) -> None:
        self.until_steps(self.steps() + count)

    def end(self) -> int:
        """Let traced.py hurry, and wait for the end; the exit code."""
        (self.results / "hurry").touch()
        return self.wait()

    def wait(self) -> int:
        """Wait until it ends by itself; the exit code."""
        assert self.process is not None
        self.until(lambda: self.process is not None and self.process.poll() is not None, running=False)
        return self.process.returncode

    def survivors(self) -> list[str]:
        """Processes of the job that do not end with it."""
        _, alive = psutil.wait_procs(self.family, timeout=PATIENCE)
        return [describe(p) for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    def kill(self) -> None:
        """Leave nothing behind, whatever the test did."""
        if self.process is None:
            return
        self.remember()
        if self.process.poll() is None:
            self.process.kill()
        for process in self.family:
            try:
                process.send_signal(signal.SIGKILL)
            except psutil.NoSuchProcess:
                continue
        self.process.wait()


def run(*command: object, **environment: str) -> str:
    """Run a command that is to succeed; what it prints on its standard output."""
    done = subprocess.run(
        [*map(str, command)],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Undisturbed:
    """What traced.py trains in one process, without a launcher."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._train(1)

    def _train(self, epochs: int) -> None:
        """Train so many epochs, and some that longer jobs need; once for all processes that run tests."""
        epochs = -(-epochs // 15) * 15
        folder = self._folder / str(epochs)
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (folder / "final.pt").exists():
                run(sys.executable, TRACED, folder, "--epochs", epochs, "--keep")
        self._final = torch.load(folder / "final.pt")

    @property
    def losses(self) -> list[float]:
        """Of each step."""
        return list(self._final["losses"])

    def check_final(self, results: Path) -> int:
        """Another training has come to the same bits; the number of its epochs."""
        found = torch.load(results / "final.pt")
        epochs = len(found["losses"]) // STEPS
        if epochs > len(self._final["kept"]):
            self._train(epochs)
        assert found["losses"] == self._final["losses"][: epochs * STEPS]
        expected = self._final["kept"][epochs - 1]
        assert found["lr"] == expected["lr"]
        for name, value in expected["model"].items():
            assert torch.equal(found["model"][name], value), name
        return epochs

    def check(self, job: Any, repeated: int = 0) -> None:
        """It has the same bits, and every sample of every epoch was used once.

        Up to `repeated` steps may have been begun in a world that lost a worker, and done in the next one.
        """
        epochs = self.check_final(job.results)
        lines = [line for path in job.results.glob("begun.*.jsonl") for line in path.read_text().splitlines()]
        assert used(job.trace(), repeated, map(json.loads, lines)) == Counter(
            (epoch, sample) for epoch in range(epochs) for sample in range(SAMPLES)
        )


def used(
    trace: Iterable[Mapping[str, Any]], repeated: int = 0, begun: Iterable[Mapping[str, Any]] = ()
) -> Counter[tuple[int, int]]:
    """How often each sample of each epoch was used in a history; see `Undisturbed.check`.

    A worker that was killed has contributed to a step that others have done, though it may not have said so.
    """
    contributed = {(row["epoch"], row["step"], row["size"], row["rank"]): row for row in begun}
    worlds: dict[tuple[int, int], dict[int, list[Mapping[str, Any]]]] = {}
    for row in trace:
        worlds.setdefault((row["epoch"], row["step"]), {}).setdefault(row["size"], []).append(row)
    assert sum(len(sizes) > 1 for sizes in worlds.values()) <= repeated
    found: Counter[tuple[int, int]] = Counter()
    for sizes in worlds.values():
        rows = sizes[size := min(sizes)]  # of the world that came last
        missing = set(range(size)) - {row["rank"] for row in rows}
        rows += [contributed[rows[0]["epoch"], rows[0]["step"], size, rank] for rank in missing]
        assert len(rows) == size
        found.update((row["epoch"], sample) for row in rows for sample in row["samples"])
    return found
