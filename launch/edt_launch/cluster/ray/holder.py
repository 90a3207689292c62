"""What runs on a node of a Ray cluster: an actor that holds devices of the node and starts agents.

It lives on when whoever has made it is gone, as jobs outlive the service. It ends by itself: told to leave,
or not asked anything for a while, it waits for the last agent, and ends. Ray frees the devices then.
"""

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from edt_launch.cluster.ray.nodes import GPU

ORPHANED = 60.0
"""Seconds without a question after which a holder leaves."""

LOOK_INTERVAL = 0.5
"""Seconds between two looks whether it is time to end."""

HOLD_TIMEOUT = 5.0
"""Seconds that Ray has to reserve a device. One that is not there is asked for no longer: the autoscaler
would bring a node for it."""

LAST_WORDS = 4000
"""Characters of an agent's last words that are passed on."""

AGENT = (sys.executable, "-P", "-m", "edt_launch.agent.dial_back")

RAYS_OWN = frozenset(
    # For Ray's workers, which an agent is not. A device's worker is told its device by its agent.
    ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "PYTHONBREAKPOINT", "PYTHONUNBUFFERED")
)


def agent_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of an agent: the node's, without what Ray sets for its workers."""
    return {
        name: value
        for name, value in environment.items()
        if not name.startswith("RAY_") and name not in RAYS_OWN
    }


def next_names(taken: Sequence[str], count: int) -> list[str]:
    """Names for so many more slots that are no GPUs."""
    free = (f"cpu{index}" for index in range(len(taken) + count))
    return [name for name in free if name not in taken][:count]


class Holder:
    """Holds devices of the node that it runs on; every method may be called at any time."""

    def __init__(self, node: str, kind: str) -> None:
        self._node = node
        self._kind = kind
        self._groups: dict[str, Any] = {}
        """Placement groups, by the device that each holds."""
        self._agents: set[asyncio.subprocess.Process] = set()
        self._starting = 0
        self._asked_at = time.monotonic()
        self._watching: asyncio.Task[None] | None = None

    async def look(self) -> tuple[str, ...]:
        """The devices that are held."""
        self._ask()
        return tuple(self._groups)

    async def hold(self, count: int) -> tuple[str, ...]:
        """Hold so many more devices, or as many as there are; returns all that are held."""
        from ray.util.placement_group import placement_group, remove_placement_group

        self._ask()
        here = {"ray.io/node-id": self._node}
        groups = [placement_group([{self._kind: 1}], bundle_label_selector=[here]) for _ in range(count)]
        named: dict[str, Any] = {}
        try:
            ready = await asyncio.gather(*(asyncio.to_thread(group.wait, HOLD_TIMEOUT) for group in groups))
            held = [group for group, is_ready in zip(groups, ready, strict=True) if is_ready]
            if self._kind == GPU:
                names = await asyncio.gather(*map(_number_of, held))
            else:
                names = next_names(list(self._groups), len(held))
            named.update(zip(names, held, strict=True))
        finally:
            for group in groups:
                if group not in named.values():
                    remove_placement_group(group)
        self._groups |= named
        self._ask()
        return tuple(self._groups)

    async def release(self, names: Sequence[str]) -> tuple[str, ...]:
        """Give devices back; returns those that are still held."""
        from ray.util.placement_group import remove_placement_group

        self._ask()
        for name in names:
            if (group := self._groups.pop(name, None)) is not None:
                remove_placement_group(group)
        return tuple(self._groups)

    async def leave(self) -> None:
        """End, and give all devices back, as soon as no agent runs."""
        import ray

        self._asked_at = float("inf")
        while not self._is_idle:
            await asyncio.sleep(LOOK_INTERVAL)
        ray.actor.exit_actor()

    async def start(self, words: Sequence[str], text: str) -> tuple[int, str]:
        """Run an agent to its end; returns its exit code and what it said last.

        Args:
            words: arguments of its command.
            text: what it reads from standard input, which nobody else gets to see.
        """
        self._ask()
        self._starting += 1
        try:
            process = await asyncio.create_subprocess_exec(
                *AGENT,
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=agent_environment(os.environ),
                start_new_session=True,
            )
            self._agents.add(process)
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, process.pid, 0)  # Ray's own workers run at 15
        finally:
            self._starting -= 1
        try:
            assert process.stdin is not None
            assert process.stderr is not None
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its exit code says more
                process.stdin.write(text.encode())
                await process.stdin.drain()
            process.stdin.close()
            said = ""
            while data := await process.stderr.read(2**16):
                said = (said + data.decode(errors="replace"))[-LAST_WORDS:]
            return await process.wait(), said
        finally:
            self._agents.discard(process)
            self._ask()

    @property
    def _is_idle(self) -> bool:
        return not self._agents and not self._starting

    def _ask(self) -> None:
        self._asked_at = time.monotonic()
        if self._watching is None:
            self._watching = asyncio.get_running_loop().create_task(self._watch())

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_INTERVAL)
            if time.monotonic() - self._asked_at > ORPHANED and self._is_idle:
                os.kill(os.getpid(), signal.SIGKILL)  # only who was called may end an actor in good order


async def _number_of(group: Any) -> str:
    """The number of the GPU that a placement group holds: only who runs in it is told."""
    import ray
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    where = PlacementGroupSchedulingStrategy(group, 0)
    ask = ray.remote(_own_gpu).options(num_cpus=0, num_gpus=1, scheduling_strategy=where)
    number: str = await ask.remote()
    return number


def _own_gpu() -> str:
    import ray

    return str(ray.get_runtime_context().get_accelerator_ids()[GPU][0])
