"""A Ray cluster of several nodes on this machine: ``python -m edt_launch.cluster.ray.local 3``.

It hears on standard input ``add NAME``, ``drain NAME``, ``remove NAME``, ``kill NAME``, and ends with it.
Each answer is a line.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

COMMANDS = ("add", "drain", "remove", "kill")

START_TIMEOUT = 120.0
"""Seconds that a node has to join; Ray's own 30 are few on a busy machine."""

DRAIN_TIME = 600
"""Seconds that a drained node has, as Ray is told; it stays until it is removed."""

QUICK = {
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "2",
    "RAY_health_check_initial_delay_ms": "500",
    "RAY_raylet_start_wait_time_s": "120",
    "RAY_enable_worker_prestart": "0",
    "RAY_worker_niceness": "0",
}
"""Ray notices within about a second that a node is gone, instead of half a minute; and has time to start."""


class LocalCluster:
    """Nodes called `prefix` and their number, with `cpus` slots each; the first one is the head."""

    def __init__(self, nodes: int, cpus: int, folder: str, prefix: str = "n") -> None:
        os.environ.update({**QUICK, "RAY_TMPDIR": folder})
        from ray.cluster_utils import Cluster

        self._cpus = cpus
        self._nodes: dict[str, Any] = {}
        head = {"num_cpus": cpus, "node_name": f"{prefix}1", "include_dashboard": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        for number in range(2, nodes + 1):
            self.add(f"{prefix}{number}")

    @property
    def address(self) -> str:
        """What ``--ray`` is given."""
        return str(self._cluster.address)

    def add(self, name: str) -> None:
        """Start a node, and wait until it has joined."""
        self._nodes[name] = self._cluster.add_node(wait=False, num_cpus=self._cpus, node_name=name)
        self._cluster._wait_for_node(self._nodes[name], START_TIMEOUT)

    def drain(self, name: str) -> None:
        """Tell Ray that a node is about to be preempted, as ``ray drain-node`` does."""
        from ray._raylet import GcsClient  # type: ignore[attr-defined]  # it is made by Cython
        from ray.core.generated import autoscaler_pb2

        reason = autoscaler_pb2.DrainNodeReason.Value("DRAIN_NODE_REASON_PREEMPTION")
        deadline = int(1000 * (time.time() + DRAIN_TIME))
        client = GcsClient(address=self.address)
        client.drain_node(self._nodes[name].node_id, reason, "edt up", deadline)

    def remove(self, name: str) -> None:
        """End a node, which may say so."""
        self._cluster.remove_node(self._nodes.pop(name), allow_graceful=True)

    def kill(self, name: str) -> None:
        """Kill a node's processes: those of Ray, not what they have started."""
        self._cluster.remove_node(self._nodes.pop(name), allow_graceful=False)

    def close(self) -> None:
        """End all nodes."""
        self._cluster.shutdown()


def first_line(error: Exception) -> str:
    """Of its text, which may be long."""
    return next(iter(str(error).splitlines()), "")


def main() -> None:
    """Run a cluster until standard input ends."""
    parser = argparse.ArgumentParser()
    parser.add_argument("nodes", type=int)
    parser.add_argument("--cpus", type=int, default=1)
    parser.add_argument("--folder", required=True, help="short: sockets are in it")
    parser.add_argument("--prefix", default="n")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    cluster = LocalCluster(options.nodes, options.cpus, options.folder, options.prefix)
    try:
        print(f"edt: {cluster.address}", flush=True)
        for line in sys.stdin:
            command, _, name = line.strip().partition(" ")
            if command not in COMMANDS or not name:
                print(f"edt: expected one of {', '.join(COMMANDS)}, and a name", flush=True)
                continue
            try:
                call: Callable[[str], None] = getattr(cluster, command)
                call(name)
                print(f"edt: {line.strip()}: done", flush=True)
            except KeyError:
                print(f"edt: there is no node {name!r}; the first one is the head, which stays", flush=True)
            except Exception as error:  # noqa: BLE001 - of Ray's many kinds; the other nodes stay
                print(f"edt: {line.strip()}: {type(error).__name__}: {first_line(error)}", flush=True)
    except KeyboardInterrupt:
        pass
    finally:
        cluster.close()


if __name__ == "__main__":
    main()
