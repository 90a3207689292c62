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
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from elastic_jobs import environment

FAKE_HEAD = "fffffffffffffffffffffffffffffffffffffffffffffffffff00000"
"""By which an autoscaler that starts nodes as processes knows the head."""

QUIET = {"RAY_enable_worker_prestart": "0", "RAY_worker_niceness": "0"}
"""Variables of a cluster that starts no worker before it is needed, and each at the usual priority."""


def missing() -> str | None:
    """Why there is no cluster; None if there can be one."""
    return None if importlib.util.find_spec("ray") else "needs Ray: pip install 'edt-hvd[ray]'"


class NodeError(Exception):
    """What was asked of a node was not done; the message is the cluster's."""


class RayNodes:
    """Nodes `name(1)`, the head, `name(2)`, ..."""

    def __init__(self, process: subprocess.Popen[str], prefix: str) -> None:
        self._process = process
        self._prefix = prefix
        self._asking = threading.Lock()
        self.address = self._answer()

    def name(self, number: int) -> str:
        """What Ray calls a node."""
        return f"{self._prefix}{number}"

    def add(self, number: int) -> str:
        """Start a node; its name."""
        return self._do("add", number)

    def drain(self, number: int) -> str:
        """Tell Ray that a node is about to be preempted; its name."""
        return self._do("drain", number)

    def remove(self, number: int) -> str:
        """End a node, which may say so; its name."""
        return self._do("remove", number)

    def kill(self, number: int) -> str:
        """Kill Ray's processes of a node; agents and workers survive them for a while. Its name."""
        return self._do("kill", number)

    def power_off(self, number: int) -> str:
        """Kill every process of a node, as if its power had failed; its name."""
        self.freeze(number)
        for process in self.processes(number):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        return self.kill(number)

    def freeze(self, number: int, is_frozen: bool = True) -> None:
        """Stop every process of a node; or have them go on."""
        for process in self.processes(number):
            with contextlib.suppress(psutil.NoSuchProcess):
                process.suspend() if is_frozen else process.resume()

    def lose_head(self) -> None:
        """End what knows the cluster's state; its nodes are still there."""
        for process in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.name() == "gcs_server":
                    process.kill()

    @property
    def numbers(self) -> set[int]:
        """Of the nodes that are up, without the head; frozen ones are."""
        words = {word for process in psutil.process_iter() for word in _words(process)}
        option = f"--node-name={self._prefix}"
        return {int(word.removeprefix(option)) for word in words if word.startswith(option)} - {1}

    def processes(self, number: int) -> set[psutil.Process]:
        """All of a node: those of Ray, agents, and workers of jobs."""
        name = self.name(number)
        roots = {p for p in psutil.process_iter() if f"--node-name={name}" in _words(p)}
        found = {p for p in psutil.process_iter() if environment(p).get("HOROVOD_HOSTNAME") == name}
        for root in roots | set(self.agents(number)):
            with contextlib.suppress(psutil.NoSuchProcess):
                found |= {root, *root.children(recursive=True)}
        return found

    def agents(self, number: int | None = None) -> list[psutil.Process]:
        """The processes by which nodes take part in jobs, or one of them does."""
        names = self._prefix if number is None else self.name(number)
        found = []
        for process in psutil.process_iter():
            words = _words(process)
            is_its = bool(words) and (words[-1] == names if number else words[-1].startswith(names))
            if is_its and "edt_launch.agent.dial_back" in words:
                found.append(process)
        return found

    def _do(self, command: str, number: int) -> str:
        with self._asking:
            assert self._process.stdin is not None
            self._process.stdin.write(f"{command} {self.name(number)}\n")
            self._process.stdin.flush()
            if not (said := self._answer()).endswith(": done"):
                raise NodeError(said)
        return self.name(number)

    def _answer(self) -> str:
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            if line.startswith("edt: "):
                return line.removeprefix("edt: ").strip()
        raise AssertionError("the Ray cluster has ended")


def _words(process: psutil.Process) -> list[str]:
    """Of its command line; none of one that has ended."""
    with contextlib.suppress(psutil.Error):
        return list(process.cmdline())
    return []


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


class StartedHead:
    """A head that was started with ``ray start --head``, and what it has started.

    Attributes:
        address: what ``--ray`` is given.
        dashboard: what ``ray job submit --address`` is given; empty if there is none.
    """

    dashboard = ""

    def __init__(self, folder: Path, port: int) -> None:
        self._folder = folder
        self.address = f"127.0.0.1:{port}"

    def processes(self, name: str = "") -> list[psutil.Process]:
        """The processes of the cluster, or those of one program of it."""
        found = []
        for process in psutil.process_iter():
            words = _words(process)
            text = " ".join(words)
            is_its = str(self._folder) in text or f"={self.address}" in text
            if is_its and name in text.split(" ")[0]:
                found.append(process)
        return found

    @property
    def count(self) -> int:
        """Nodes besides the head."""
        return len(self.processes("raylet")) - 1


@contextlib.contextmanager
def _started_head(
    folder: Path, port: int, words: list[str], variables: dict[str, str]
) -> Iterator[StartedHead]:
    """A head in a folder; in the end no process of the cluster is left."""
    start = ["start", "--head", "--block", "--port", str(port), "--node-ip-address", "127.0.0.1"]
    start += ["--temp-dir", str(folder), "--disable-usage-stats", "--object-store-memory", str(10**8)]
    process = subprocess.Popen(
        [Path(sys.executable).parent / "ray", *start, *words],
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    head = StartedHead(folder, port)
    try:
        while not _listens(port):
            assert process.poll() is None
            time.sleep(0.2)
        yield head
    finally:
        every = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
        for left in [*every, *head.processes()]:
            with contextlib.suppress(psutil.NoSuchProcess):
                left.kill()
        process.wait()


@contextlib.contextmanager
def one_node(*words: object) -> Iterator[StartedHead]:
    """A head that is the only node; `words` are further options of ``ray start``."""
    (port,) = _free_ports(1)
    with (
        tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as folder,
        _started_head(Path(folder), port, list(map(str, words)), QUIET) as head,
    ):
        yield head


@contextlib.contextmanager
def head_with_dashboard(cpus: int) -> Iterator[StartedHead]:
    """A head that takes jobs of ``ray job submit``."""
    dashboard, agent = _free_ports(2)
    ports = ("--dashboard-port", dashboard, "--dashboard-agent-listen-port", agent)
    with one_node("--num-cpus", cpus, *ports) as head:
        while not _listens(dashboard):
            time.sleep(0.2)
        head.dashboard = f"http://127.0.0.1:{dashboard}"
        yield head


@contextlib.contextmanager
def autoscaled_nodes(most: int, cpus: int = 1) -> Iterator[StartedHead]:
    """A cluster of at most so many nodes, processes of this machine; the head has no slot."""
    (port,) = _free_ports(1)
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
    variables = {
        **QUIET,
        "RAY_FAKE_CLUSTER": "1",
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        "AUTOSCALER_HEARTBEAT_TIMEOUT_S": "600",
        "RAY_OVERRIDE_NODE_ID_FOR_TESTING": FAKE_HEAD,
    }
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as name:
        file = Path(name) / "autoscaler.json"
        file.write_text(json.dumps(configuration))
        words = ["--num-cpus", "0", "--include-dashboard", "false", "--autoscaling-config", str(file)]
        with _started_head(Path(name), port, words, variables) as nodes:
            yield nodes


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)]
        return [one.getsockname()[1] for one in sockets]


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True
