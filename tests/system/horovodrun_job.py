"""A job under plain horovodrun, whose allocation file the test rewrites."""

import os
import shlex
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
from attacked import journals

from edt_launch.agent import processes
from harness import POLL, TRACED
from programs.traced import SAMPLES

BIN = Path(sys.executable).parent
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
    ) -> "HorovodrunJob":
        words = [BIN / "horovodrun", "-np", at_start, "--min-np", 1, "--max-np", MAX_NP]
        words += [
            "--network-interface",
            "lo",
            "--host-discovery-script",
            f"edt-discover {shlex.quote(str(self.allocation))}",
        ]
        words += options
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
        return self

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
        assert self.process is not None
        return self.process.wait()

    def check(self, epochs: int, undisturbed: Mapping[str, Any], repeated: int = 0) -> None:
        """As the function `check`, for this job."""
        check(self.trace(), self.results, epochs, undisturbed, repeated)

    def kill(self) -> None:
        """Leave nothing behind, whatever the test did."""
        if self.process is not None and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        processes.kill(processes.having({"EDT_LOGS": str(self.output)}))


def check(
    trace: Iterable[Mapping[str, Any]],
    results: Path,
    epochs: int,
    undisturbed: Mapping[str, Any],
    repeated: int = 0,
) -> None:
    """Every sample of every epoch once, and the bits of one worker.

    Up to `repeated` steps may have been begun in a world that lost a worker, and done in the next one.
    """
    worlds: dict[tuple[int, int], dict[int, list[Mapping[str, Any]]]] = {}
    for row in trace:
        worlds.setdefault((row["epoch"], row["step"]), {}).setdefault(row["size"], []).append(row)
    assert sum(len(sizes) > 1 for sizes in worlds.values()) <= repeated
    seen: Counter[tuple[int, int]] = Counter()
    for sizes in worlds.values():
        rows = sizes[min(sizes)]  # of the world that came last
        assert sorted(row["rank"] for row in rows) == list(range(min(sizes)))
        seen.update((row["epoch"], sample) for row in rows for sample in row["samples"])
    assert seen == Counter((epoch, sample) for epoch in range(epochs) for sample in range(SAMPLES))
    final = torch.load(results / "final.pt")
    assert final["losses"] == undisturbed["losses"]
    assert all(torch.equal(final["model"][name], value) for name, value in undisturbed["model"].items())


def train_alone(folder: Path, epochs: int) -> dict[str, Any]:
    """The results of the same training in one process."""
    subprocess.run([sys.executable, TRACED, folder, "--epochs", str(epochs)], check=True)
    return dict(torch.load(folder / "final.pt"))
