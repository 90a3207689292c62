"""A Ray cluster of several nodes on this machine, in a process of its own."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator

import psutil


def missing() -> str | None:
    """Why there is no cluster; None if there can be one."""
    return None if importlib.util.find_spec("ray") else "needs Ray: pip install 'edt-hvd[ray]'"


class RayNodes:
    """Nodes `name(1)`, the head, `name(2)`, ..."""

    def __init__(self, process: subprocess.Popen[str], prefix: str) -> None:
        self._process = process
        self._prefix = prefix
        self.address = self._answer()

    def name(self, number: int) -> str:
        return f"{self._prefix}{number}"

    def add(self, number: int) -> str:
        return self._do("add", number)

    def remove(self, number: int) -> str:
        return self._do("remove", number)

    def kill(self, number: int) -> str:
        """End the processes of a node as if its power had failed; agents may survive them."""
        return self._do("kill", number)

    def agents(self) -> list[psutil.Process]:
        """The processes by which nodes take part in jobs."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                if "edt_launch.agent.dial_back" in words and words[-1].startswith(self._prefix):
                    found.append(process)
        return found

    def _do(self, command: str, number: int) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command} {self.name(number)}\n")
        self._process.stdin.flush()
        self._answer()
        return self.name(number)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.startswith("edt: "):
                return line.removeprefix("edt: ").strip()
        raise AssertionError("the Ray cluster has ended")


@contextlib.contextmanager
def ray_nodes(count: int, cpus: int = 1) -> Iterator[RayNodes]:
    """A cluster; in the end no process of it is left."""
    prefix = f"n{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:  # sockets have short paths
        words = [str(count), "--cpus", str(cpus), "--folder", folder, "--prefix", prefix]
        with subprocess.Popen(
            [sys.executable, "-m", "edt_launch.cluster.ray.local", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield RayNodes(process, prefix)
            finally:
                every = psutil.Process(process.pid).children(recursive=True)
                assert process.stdin is not None
                process.stdin.close()
                try:
                    process.wait(60)
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    for left in every:
                        with contextlib.suppress(psutil.NoSuchProcess):
                            left.kill()
