"""A job under plain horovodrun, whose allocation file the test rewrites."""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
from attacked import journals

from edt_launch.agent.system import processes
from harness import BIN, POLL, TRACED

LOCAL = ("localhost", "127.0.0.1")
"""Two names of this machine, which Horovod takes for two hosts, and needs no ssh for."""

MAX_NP = 4


class HorovodrunJob:
    """traced.py under `horovodrun --host-discovery-script "edt-discover FILE"`, as one starts it by hand."""

    def __init__(self, folder: Path) -> None:
        self.results = folder / "results"
        self.results.mkdir(parents=True)
        self.allocation = folder / "allocation"
        self.output = folder / "output"
        self.hosts = LOCAL
        self.generation = 0
        self.process: subprocess.Popen[bytes] | None = None

    def allocate(self, *slots: int) -> None:
        """Give the job so many slots on each of its hosts."""
        self.generation += 1
        lines = [f"{host}:{count}\n" for host, count in zip(self.hosts, slots, strict=False) if count]
        beside = self.allocation.with_suffix(".new")
        beside.write_text(f"# edt allocation v1 generation={self.generation}\n{''.join(lines)}")
        beside.rename(self.allocation)

    def start(
        self,
        at_start: int,
        *arguments: object,
        options: tuple[object, ...] = (),
        program: tuple[object, ...] = (TRACED,),
    ) -> None:
        """Start it with so many workers; the arguments are the program's."""
        discover = f"edt-discover {shlex.quote(str(self.allocation))}"
        words = [BIN / "horovodrun", "-np", at_start, "--min-np", 1, "--max-np", MAX_NP]
        words += ["--network-interface", "lo", "--host-discovery-script", discover, *options]
        environment = os.environ | {"PATH": f"{BIN}:{os.environ['PATH']}", "EDT_LOGS": str(self.output)}
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [*map(str, words), sys.executable, *map(str, (*program, self.results, *arguments))],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )

    @property
    def printed(self) -> str:
        return self.output.read_text(errors="replace")

    def trace(self) -> list[dict[str, Any]]:
        """What the workers have written down, one row a worker and step, in no order."""
        return journals.rows(self.results.glob("trace.*.jsonl"))

    def size(self) -> int:
        """Workers in the newest step, when all of them have written it down; 0 until then."""
        rows = self.trace()
        newest = max(((row["epoch"], row["step"]) for row in rows), default=None)
        sizes = Counter(row["size"] for row in rows if (row["epoch"], row["step"]) == newest)
        size = min(sizes, default=0)  # of the world that came last
        return size if sizes[size] == size else 0

    def until(self, condition: Callable[[], object]) -> None:
        """Wait for a condition; a job that has ended fails the test with what it printed."""
        assert self.process is not None
        while not condition():
            assert self.process.poll() is None, self.printed
            time.sleep(POLL)

    def until_size(self, size: int) -> None:
        self.until(lambda: self.size() == size)

    def workers(self, host: str) -> list[psutil.Process]:
        """Processes of the script on a host, as Horovod's variables say."""
        found = processes.having({"EDT_LOGS": str(self.output), "HOROVOD_HOSTNAME": host})
        return [one for one in found if str(TRACED) in processes.command_line(one)]

    def end(self) -> int:
        """Let the script hurry, and wait for the end; the exit code."""
        (self.results / "hurry").touch()
        return self.wait()

    def wait(self) -> int:
        """Wait until it ends by itself; the exit code."""
        assert self.process is not None
        return self.process.wait()

    def kill(self) -> None:
        """Leave nothing behind, whatever the test did."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        processes.kill(processes.having({"EDT_LOGS": str(self.output)}))
