"""What workers use of their host, measured without waiting for anything: processors, memory, their GPUs."""

import contextlib
import csv
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping

import psutil

from edt_launch.agent.protocol import Usage

FIELDS = ("utilization.gpu", "memory.used", "power.draw")
"""What `nvidia-smi` is asked of each GPU: a percentage, MiB, watts."""

MAX_ANSWER = 2**16
"""Bytes of its answer that are read."""


class UsageMeter:
    """Measures all processes below this one, and GPUs by the answer to the question before."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._before: Mapping[int, float] = {}
        self._asked: subprocess.Popen[bytes] | None = None
        """What NVIDIA's driver is asked with. It may stand still, and nobody waits for it."""

    def measure(self, now: float, gpus: Iterable[str]) -> Usage | None:
        """What is used since the last measurement; None for the first one.

        Args:
            now: by a monotonic clock.
            gpus: of the workers, by index or UUID.
        """
        used, memory = dict[int, float](), 0
        with contextlib.suppress(psutil.Error, OSError):  # some systems hide other users' processes
            for process in psutil.Process().children(recursive=True):
                with contextlib.suppress(psutil.Error), process.oneshot():  # it may have ended meanwhile
                    times = process.cpu_times()
                    used[process.pid] = times.user + times.system
                    memory += process.memory_info().rss
        before, since = self._before, self._at
        self._before, self._at = used, now
        of_gpus = self._answer()
        self._ask(gpus)
        if since is None or now <= since:
            return None
        seconds = sum(max(0.0, total - before.get(pid, 0.0)) for pid, total in used.items())
        return Usage(seconds / (now - since), memory, *of_gpus)

    def _ask(self, gpus: Iterable[str]) -> None:
        if self._asked is None and (names := ",".join(gpus)):
            query = ("nvidia-smi", f"--id={names}", f"--query-gpu={','.join(FIELDS)}")
            with contextlib.suppress(OSError):  # there is no such driver here
                self._asked = subprocess.Popen(
                    [*query, "--format=csv,noheader,nounits"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
                assert self._asked.stdout is not None
                os.set_blocking(self._asked.stdout.fileno(), False)

    def _answer(self) -> tuple[float | None, int | None, float | None]:
        """The answer to the last question, if it is there."""
        if self._asked is None or self._asked.stdout is None:
            return None, None, None
        try:
            text = os.read(self._asked.stdout.fileno(), MAX_ANSWER).decode(errors="replace")
        except BlockingIOError:
            return None, None, None
        self.close()
        return _of(text)

    def close(self) -> None:
        """Ask no more."""
        if self._asked is not None:
            assert self._asked.stdout is not None
            self._asked.stdout.close()
            self._asked.kill()
            self._asked.returncode = 0  # the agent waits for all its children
            self._asked = None


def _of(answer: str) -> tuple[float | None, int | None, float | None]:
    """Mean utilization, memory in bytes, and watts, each None where no GPU says it."""
    columns = zip(*(row for row in csv.reader(answer.splitlines()) if len(row) == len(FIELDS)), strict=True)
    found = [[value for text in column if (value := _number(text)) is not None] for column in columns]
    utilization, memory, power = found or ([], [], [])
    return (
        sum(utilization) / len(utilization) if utilization else None,
        int(sum(memory) * 2**20) if memory else None,
        sum(power) if power else None,
    )


def _number(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:  # such as "[N/A]"
        return None
    return found if 0 <= found < sys.maxsize else None
