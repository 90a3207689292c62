"""A Ray cluster of several nodes on this machine, in a process of its own."""

import contextlib
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

FAKE_HEAD = "fffffffffffffffffffffffffffffffffffffffffffffffffff00000"
"""By which an autoscaler that starts nodes as processes knows the head."""


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
        """What Ray calls a node."""
        return f"{self._prefix}{number}"

    def add(self, number: int) -> str:
        """Start a node; its name."""
        return self._do("add", number)

    def remove(self, number: int) -> str:
        """End a node, which may say so; its name."""
        return self._do("remove", number)

    def kill(self, number: int) -> str:
        """End the processes of a node as if its power had failed; agents may survive them."""
        return self._do("kill", number)

    def lose_head(self) -> None:
        """End what knows the cluster's state; its nodes are still there."""
        for process in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() == "gcs_server":
                    process.kill()

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


class AutoscaledNodes:
    """A cluster whose autoscaler starts nodes as processes of this machine; the head has no slot."""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self.address = f"127.0.0.1:{port}"

    def processes(self, name: str = "") -> list[psutil.Process]:
        """The processes of the cluster, or those of one program of it."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                words = " ".join(process.cmdline())
                if (str(self._folder) in words or f"={self.address}" in words) and name in words.split(" ")[
                    0
                ]:
                    found.append(process)
        return found

    @property
    def count(self) -> int:
        """Nodes besides the head."""
        return len(self.processes("raylet")) - 1


@contextlib.contextmanager
def autoscaled_nodes(most: int, cpus: int = 1) -> Iterator[AutoscaledNodes]:
    """A cluster of at most so many nodes; in the end no process of it is left."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    worker = {"resources": {"CPU": cpus}, "node_config": {}, "min_workers": 0, "max_workers": most}
    head = {"resources": {"CPU": 0}, "node_config": {}, "max_workers": 0}
    configuration = {
        "cluster_name": "autoscaled",
        "max_workers": most,
        "idle_timeout_minutes": 0.2,
        "upscaling_speed": 100,
        "provider": {
            "type": "fake_multinode",
            "gcs_address": f"127.0.0.1:{port}",
            "disable_node_updaters": True,
            "use_node_id_as_ip": True,
        },
        "auth": {},
        "file_mounts": {},
        "cluster_synced_files": [],
        "worker_setup_commands": [],
        "worker_start_ray_commands": [],
        "available_node_types": {"ray.head.default": head, "worker": worker},
        "head_node_type": "ray.head.default",
    }
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as name:
        file = Path(name) / "autoscaler.json"
        file.write_text(json.dumps(configuration))
        quick = {
            "RAY_FAKE_CLUSTER": "1",
            "AUTOSCALER_UPDATE_INTERVAL_S": "1",
            "AUTOSCALER_HEARTBEAT_TIMEOUT_S": "600",
            "RAY_enable_worker_prestart": "0",
        }
        own = {"RAY_OVERRIDE_NODE_ID_FOR_TESTING": FAKE_HEAD, "RAY_worker_niceness": "0"}
        words = [
            "--head",
            "--block",
            "--port",
            str(port),
            "--num-cpus",
            "0",
            "--node-ip-address",
            "127.0.0.1",
        ]
        words += ["--temp-dir", name, "--include-dashboard", "false", "--disable-usage-stats"]
        words += ["--object-store-memory", str(10**8), "--autoscaling-config", str(file)]
        process = subprocess.Popen(
            [Path(sys.executable).parent / "ray", "start", *words],
            env={**os.environ, **quick, **own},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        nodes = AutoscaledNodes(Path(name), port)
        try:
            while not _listens(port):
                assert process.poll() is None
                time.sleep(0.2)
            yield nodes
        finally:
            every = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            for left in [*every, *nodes.processes()]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    left.kill()
            process.wait()


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
