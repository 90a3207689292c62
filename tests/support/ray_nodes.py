"""A Ray cluster of several nodes on this machine, in a process of its own."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

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

    def drain(self, number: int) -> None:
        """Tell Ray that a node is about to be preempted."""
        find = (
            "import ray, sys; ray.init(sys.argv[1], log_to_driver=False)\n"
            "print(*(node['NodeID'] for node in ray.nodes() if node['NodeName'] == sys.argv[2]))"
        )
        words = [sys.executable, "-c", find, self.address, self.name(number)]
        node = subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip()
        notice = "--reason=DRAIN_NODE_REASON_PREEMPTION", "--reason-message=spot"
        command = [Path(sys.executable).parent / "ray", "drain-node", "--address", self.address]
        command += ["--node-id", node, *notice, "--deadline-remaining-seconds=600"]
        subprocess.run(command, check=True, capture_output=True)

    def agents(self, number: int | None = None) -> list[psutil.Process]:
        """The processes by which nodes take part in jobs, or one of them does."""
        prefix = self._prefix if number is None else self.name(number)
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                words = process.cmdline()
                if "edt_launch.agent.dial_back" in words and words[-1].startswith(prefix):
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
