"""The processes of a WMLA program: their variables, slots and files."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from platform import node
from queue import SimpleQueue

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running import environment
from edt_launch.adapters.wmla.running.layout import ResultDir, executor_id
from edt_launch.agent.ports import PORT_VARIABLE, reserve_port
from edt_launch.cluster.network import HostChecker, resolve
from edt_launch.core.files.appender import Complain
from edt_launch.launcher.program import Workers
from edt_launch.membership.protocol import Slot, Worker


def _to_standard_error(message: str) -> None:
    print(message, file=sys.stderr)


@dataclass(kw_only=True)
class WmlaWorkers(Workers):
    """The processes of a WMLA program; `complain` is told when a worker's folders cannot be made.

    Attributes:
        received: messages of the program, in the order in which they came.
    """

    framework: Framework
    exec_id: str
    result: ResultDir
    complain: Complain = _to_standard_error
    output_option: str = "--result-dir"
    received: SimpleQueue[str] = field(default_factory=SimpleQueue, init=False)
    _hosts: HostChecker = field(default_factory=HostChecker, init=False)
    _master: dict[str, str] | None = field(default=None, init=False)

    def environment(self, common: Mapping[str, str]) -> dict[str, str]:
        """What all find in their environment: nothing that each process has its own value of, or none."""
        return environment.shared(super().environment(common))

    def slots(self, slots: Sequence[Slot]) -> tuple[Slot, ...]:  # noqa: D102
        return processes(self.framework, slots)

    def receive(self, text: str) -> None:  # noqa: D102
        self.received.put(text)

    def command_of(self, worker: Worker) -> Sequence[str]:
        """The present command: agents that were started ahead know another one."""
        return self.command

    def copy_of(self, worker: int, stream: str) -> Path:  # noqa: D102
        return self.result.printed(executor_id(self.exec_id, worker + 1), stream)

    def variables_of(self, worker: Worker, slots: Sequence[Slot], address: str) -> dict[str, str]:
        """What a worker finds besides; its folders are made. One that goes without has to see for itself."""
        host = worker.slot.host if self._hosts.is_remote(worker.slot.host) else node()
        task = worker.id + 1
        process = executor_id(self.exec_id, task)
        try:
            self.result.make(process, host)
        except OSError as error:
            self.complain(f"executor {task} starts without its folders: {error.filename}: {error.strerror}")
        own = environment.of_process(self.result.log_dir(process, host), task)
        if self.framework is not Framework.GANG:
            return own
        self._master = self._master or self._choose_master(slots, address)
        return own | of_rank(slots, worker.slot) | self._master

    def meets_at(self, slots: Sequence[Slot]) -> str | None:
        """The first host of a gang, if it is another one: its agent reserves the port there."""
        is_far = self.framework is Framework.GANG and self._hosts.is_remote(slots[0].host)
        return slots[0].host if is_far else None

    def _choose_master(self, slots: Sequence[Slot], address: str) -> dict[str, str]:
        """Where the first process of a gang listens; the port of another host comes from its agent."""
        if (host := self.meets_at(slots)) is not None:
            return {"MASTER_ADDR": resolve(host) or host}
        return {"MASTER_ADDR": address, PORT_VARIABLE: str(reserve_port(address, self.ports))}


def processes(framework: Framework, slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """A slot for each process: `slots` as they are, or a single one with all devices of one host.

    Of several hosts the single process has the one with the most slots, the first among equals.
    """
    if framework is not Framework.SINGLE or not slots:
        return tuple(slots)
    hosts = [slot.host for slot in slots]
    host = max(dict.fromkeys(hosts), key=hosts.count)
    devices = [slot.device for slot in slots if slot.host == host and slot.device is not None]
    return (Slot(host, 0, ",".join(devices) if devices else None),)


def of_rank(slots: Sequence[Slot], slot: Slot) -> dict[str, str]:
    """What `torch.distributed` looks for, but for where rank 0 listens; ranks count along the slots."""
    hosts = [each.host for each in slots]
    rank = [each.key for each in slots].index(slot.key)
    return {
        "LOCAL_RANK": str(hosts[:rank].count(slot.host)),
        "LOCAL_WORLD_SIZE": str(hosts.count(slot.host)),
        "NODE_RANK": str(list(dict.fromkeys(hosts)).index(slot.host)),
        "RANK": str(rank),
        "WMLA_NWORKER": str(len(slots)),
        "WMLA_WORKER_NDEVICE": "1",
        "WORLD_SIZE": str(len(slots)),
    }
