"""The process between a job or a pool and a Ray cluster: ``python -m edt_launch.cluster.ray.bridge OPTIONS``.

It hears on standard input and tells on standard output what `messages` has. It ends with its standard input.
Everything that Ray is asked is asked without waiting for the answer: a node that is frozen stops nothing.
"""

import argparse
import contextlib
import os
import re
import selectors
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from edt_launch.cluster.ray import holding, messages
from edt_launch.cluster.ray.holder import Holder
from edt_launch.cluster.ray.holding import Device, Memory
from edt_launch.cluster.ray.joining import NAMESPACE, join
from edt_launch.cluster.ray.messages import Ended, Failed, HostView, Open, Picture, Want
from edt_launch.cluster.ray.nodes import RayNode, kind_of, names_of, read
from edt_launch.core.files.lines import LineSplitter

CLUSTER_LOOK_INTERVAL = 0.5
"""Seconds between two looks at the cluster."""

HOLDER_LOOK_INTERVAL = 10.0
"""Seconds between two questions to a holder, see `holder.ORPHANED`."""

FIND_TIMEOUT = 10.0
"""Seconds that holders have to say what they hold when a pool begins."""

LEAVE_TIMEOUT = 2.0
"""Seconds that holders have at the end to hear that they are to leave."""

MAX_MESSAGE = 2**22

Then = Callable[[Any, Exception | None], None]


class Bridge:
    """A connection to a cluster.

    Args:
        out: descriptor that messages are written to.
        pool: whose devices these are: holders are found again by it.
        holds_devices: whether to hold devices, or to start agents only.
        most: devices to hold at most; None for any number.
        is_kept: whether devices stay held when this process ends.
        idle_limit: seconds for which an unused device is held.
    """

    def __init__(
        self,
        out: int,
        pool: str,
        *,
        holds_devices: bool,
        most: int | None,
        is_kept: bool,
        idle_limit: float = holding.IDLE_LIMIT,
    ) -> None:
        import ray

        self._ray = ray
        self._pool = pool
        self._holds_devices = holds_devices
        self._most = most
        self._is_kept = is_kept
        self._idle_limit = idle_limit
        self._kind = ""
        self._names: dict[str, str] = {}
        self._nodes: tuple[RayNode, ...] = ()
        self._holders: dict[str, Any] = {}
        self._held: dict[str, tuple[str, ...]] = {}
        """Devices that each holder has, by its node."""
        self._holding: dict[str, int] = {}
        """Devices that holders have been asked for, and have not answered."""
        self._looked_at: dict[str, float] = {}
        """When each holder was asked what it holds; it is not asked anew before it has answered."""
        self._pending: dict[Any, Then] = {}
        self._want = Want(0)
        self._memory = Memory()
        self._request = 0
        self._reason = ""
        self._said = b""
        self._out = out

    def run(self) -> None:
        """Serve until standard input ends."""
        self._look()
        if self._holds_devices:
            self._find_holders()
        looked_at = 0.0
        with contextlib.suppress(BrokenPipeError):
            for command in _commands():
                if command is not None:
                    self._obey(command)
                self._collect()
                if (now := time.monotonic()) - looked_at >= CLUSTER_LOOK_INTERVAL or command is not None:
                    looked_at = now
                    self._look()
                    if self._holds_devices:
                        self._hold(now)
                    self._tell_picture()
        self._end()

    # What is asked for.

    def _obey(self, command: messages.Message) -> None:
        match command:
            case Want():
                self._want = command
            case Open():
                self._start(command)

    def _start(self, order: Open) -> None:
        node = next((node for node in self._nodes if node.name == order.host), None)
        if node is None:
            self._tell(Ended(order.number, None, f"Ray's node {order.host} is gone"))
            return
        call = self._holder(node).start.remote(order.words, order.text)

        def ended(result: Any, error: Exception | None) -> None:
            if error is None:
                self._tell(Ended(order.number, *result))
            else:
                self._tell(Ended(order.number, None, self._trouble(node, error)))

        self._pending[call] = ended

    def _trouble(self, node: RayNode, error: Exception) -> str:
        text = str(error)
        if found := re.search(r"No module named '?([\w.]+)", text):
            return f"Ray's node {node.name} has no module {found[1]}: install the same environment there"
        if isinstance(error, self._ray.exceptions.RayActorError):
            return f"Ray has lost the node {node.name}, or the actor there that starts agents"
        return f"Ray's node {node.name}: {type(error).__name__}: {text.strip().splitlines()[-1]}"

    # The cluster.

    def _look(self) -> None:
        from ray._private.state import state

        listed = self._ray.nodes()
        if not self._kind:
            self._kind = kind_of(listed, self._possible())
        self._names = names_of(self._names, listed)
        available = state.available_resources_per_node()
        self._nodes = read(listed, available, state.get_draining_nodes(), self._names, self._kind)
        for node in self._holders.keys() - self._names.keys():
            self._forget(node)

    def _groups(self) -> list[Any]:
        from ray._private.state import state

        config = state.get_cluster_config()
        return [] if config is None else [group for group in config.node_group_configs if group.max_count]

    def _possible(self) -> set[str]:
        return {name for group in self._groups() for name, count in group.resources.items() if count}

    def _find_holders(self) -> None:
        known = set(self._ray.util.list_named_actors())
        for node in self._nodes:
            if self._name(node) in known:
                self._holder(node)
                self._ask_what_is_held(node.id)
        if calls := list(self._pending):  # until they have answered, nobody is to think that nothing is held
            self._ray.wait(calls, num_returns=len(calls), timeout=FIND_TIMEOUT)
            self._collect()

    def _name(self, node: RayNode) -> str:
        return f"{self._pool}:{node.name}"

    def _holder(self, node: RayNode) -> Any:
        if node.id not in self._holders:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            options = {
                "name": self._name(node),
                "namespace": NAMESPACE,
                "lifetime": "detached",
                "get_if_exists": True,
                "num_cpus": 0,
                "max_restarts": 0,
                "scheduling_strategy": NodeAffinitySchedulingStrategy(node.id, soft=False),
            }
            kind = self._ray.remote(Holder).options(**options)
            self._holders[node.id] = kind.remote(node.id, self._kind)
        return self._holders[node.id]

    def _forget(self, node: str) -> None:
        for known in (self._holders, self._held, self._holding, self._looked_at):
            known.pop(node, None)

    # Devices.

    def _hold(self, now: float) -> None:
        names = {node.name: node.id for node in self._nodes}
        held = [Device(node, name) for node, devices in self._held.items() for name in devices]
        used = [Device(names[host], name) for host, name in self._want.used if host in names]
        wanted = self._want.slots if self._most is None else min(self._want.slots, self._most)
        decision, self._memory = holding.decide(
            now, self._nodes, held, wanted, used, self._holding, self._memory, self._idle_limit
        )
        nodes = {node.id: node for node in self._nodes}
        for id_, count in decision.hold.items():
            if id_ not in self._holding:
                self._holding[id_] = count
                call = self._holder(nodes[id_]).hold.remote(count)
                self._pending[call] = partial(self._take_held, id_)
        for id_ in {device.node for device in decision.release} & self._holders.keys():
            going = [device.name for device in decision.release if device.node == id_]
            self._held[id_] = tuple(name for name in self._held[id_] if name not in going)
            self._pending[self._holders[id_].release.remote(going)] = partial(self._take_held, id_)
        for id_ in self._holders:
            if (
                now - self._looked_at.setdefault(id_, now) >= HOLDER_LOOK_INTERVAL
                and id_ not in self._holding
            ):
                self._ask_what_is_held(id_)
        if decision.request != self._request:
            self._request_devices(decision.request)
        sizes = [node.total for node in self._nodes]
        groups = self._groups() if decision.lacking else []
        sizes += [int(group.resources.get(self._kind, 0)) for group in groups]
        self._reason = holding.reason(decision.lacking, max(sizes, default=1), bool(groups))

    def _ask_what_is_held(self, node: str) -> None:
        self._looked_at[node] = float("inf")
        self._pending[self._holders[node].look.remote()] = partial(self._take_held, node)

    def _take_held(self, node: str, devices: Any, error: Exception | None) -> None:
        self._holding.pop(node, None)
        self._looked_at[node] = time.monotonic()
        if error is not None:
            if node in self._holders:
                named = next((known for known in self._nodes if known.id == node), RayNode(node, node, ""))
                print(f"edt: {self._trouble(named, error)}", file=sys.stderr, flush=True)
            self._forget(node)
        elif node in self._holders:
            self._held[node] = devices
            if not devices and not self._want.slots:
                # A node with an actor counts as busy.
                self._pending[self._holders.pop(node).leave.remote()] = lambda *_: None
                self._forget(node)

    def _request_devices(self, count: int) -> None:
        from ray.autoscaler.sdk import request_resources

        self._request = count
        request_resources(bundles=[{self._kind: 1}] * count)

    # Answers.

    def _collect(self) -> None:
        if not self._pending:
            return
        calls = list(self._pending)
        done, _ = self._ray.wait(calls, num_returns=len(calls), timeout=0)
        for call in done:
            then = self._pending.pop(call)
            try:
                result, error = self._ray.get(call), None
            except self._ray.exceptions.RayError as caught:
                result, error = None, caught
            then(result, error)

    def _tell_picture(self) -> None:
        hosts = tuple(
            HostView(
                node.name,
                node.address,
                self._held.get(node.id, ()),
                node.total,
                node.free,
                node.is_draining,
            )
            for node in self._nodes
        )
        line = messages.write(Picture(self._kind, hosts, self._reason))
        if line != self._said:
            self._said = line
            os.write(self._out, line)

    def _tell(self, message: messages.Message) -> None:
        os.write(self._out, messages.write(message))

    def _end(self) -> None:
        if self._request:
            self._request_devices(0)
        if not self._is_kept:
            calls = [holder.leave.remote() for holder in self._holders.values()]
            if calls:
                self._ray.wait(calls, num_returns=len(calls), timeout=LEAVE_TIMEOUT)
        self._ray.shutdown()


def _commands() -> Iterator[messages.Message | None]:
    """The commands as they come, None now and then, until standard input ends."""
    lines = LineSplitter(longest=MAX_MESSAGE)
    with selectors.DefaultSelector() as selector:
        selector.register(0, selectors.EVENT_READ)
        while True:
            if selector.select(CLUSTER_LOOK_INTERVAL / 5):
                if not (data := os.read(0, 2**16)):
                    return
                for line in lines.feed(data):
                    yield messages.read(line)
            yield None


def main() -> None:
    """Connect, and serve."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--pool", required=True)
    parser.add_argument("--most", type=int)
    parser.add_argument("--idle-limit", type=float, default=holding.IDLE_LIMIT)
    parser.add_argument("--holds-devices", action="store_true")
    parser.add_argument("--keep", action="store_true")
    options = parser.parse_args()
    out, own_words = os.dup(1), os.dup(2)
    with open(os.devnull, "wb") as nothing:  # Ray prints, also what is no news to anybody
        os.dup2(nothing.fileno(), 1)
        os.dup2(nothing.fileno(), 2)
    sys.stderr = os.fdopen(own_words, "w", buffering=1)
    if (problem := join(options.address)) is not None:
        os.write(out, messages.write(Failed(problem)))
        return
    bridge = Bridge(
        out,
        options.pool,
        holds_devices=options.holds_devices,
        most=options.most,
        is_kept=options.keep,
        idle_limit=options.idle_limit,
    )
    bridge.run()


if __name__ == "__main__":
    main()
