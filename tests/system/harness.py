"""Real jobs: edt-launch, agents, workers, sockets. Nothing here is simulated."""

import contextlib
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from attacked import journals

PROGRAMS = Path(__file__).parent / "programs"
TRACED = PROGRAMS / "traced.py"
POLL = 0.05
"""Seconds between two looks at what a job has written; limits are pytest's own timeout."""

SURVEY = 0.25
"""Seconds between two looks at a job's processes, each of which reads all processes of the machine."""


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

    def allocate(self, slots: int, host: str = "localhost", devices: str = "") -> None:
        """Replace the allocation file as an allocator does."""
        self.generation += 1
        self.write_allocation(f"# edt allocation v1 generation={self.generation}\n{host}:{slots}{devices}\n")

    def write_allocation(self, text: str) -> None:
        beside = self.allocation.with_suffix(".new")
        beside.write_text(text)
        beside.rename(self.allocation)

    def start(self, script: Path, *args: object, options: tuple[str, ...] = ()) -> "ElasticJob":
        command = [sys.executable, "-m", "edt_launch.launcher.command", *self.sizes, *options]
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
        text = path.read_text() if path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines()
        parsed = [json.loads(line) for line in lines]
        return [event for event in parsed if not kinds or event["event"] in kinds]

    def trace(self) -> list[dict[str, Any]]:
        """What the workers of traced.py have written down, in no order."""
        return journals.rows(self.results.glob("trace.*.jsonl"))

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
                if "EDT_JOB" in process.environ():  # not one that has got the number of a dead one
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

    def until_size(self, size: int) -> None:
        self.until(lambda: self.size() == size)

    def steps(self) -> int:
        return len({(row["epoch"], row["step"]) for row in self.trace()})

    def until_steps(self, count: int) -> None:
        self.until(lambda: self.steps() >= count)

    def end(self) -> int:
        """Let traced.py hurry, and wait for the end; the exit code."""
        (self.results / "hurry").touch()
        assert self.process is not None
        self.until(lambda: self.process is not None and self.process.poll() is not None, running=False)
        return self.process.returncode

    def survivors(self) -> list[psutil.Process]:
        """Processes of the job that are still there a moment after its end."""
        _, alive = psutil.wait_procs(self.family, timeout=5)
        return [p for p in alive if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

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
