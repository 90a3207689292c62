"""What the driver does otherwise for a WMLA program: its processes' variables, places and files."""

import random
import socket
import sys
from collections.abc import MutableMapping, Sequence
from pathlib import Path
from platform import node

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running import environment, gang
from edt_launch.adapters.wmla.running.layout import ResultDir, executor_id
from edt_launch.cluster.network import HostChecker, resolve
from edt_launch.core.appender import Complain
from edt_launch.membership.protocol import Slot, Worker

REMOTE_PORTS = range(20000, 32000)
"""Where a process on another host is to listen: below what systems give out by themselves."""


class Workers:
    """The processes of a WMLA program.

    Args:
        framework: how it is run.
        job: the variables of the job.
        address: of this machine, where the workers reach it.
        complain: told when a worker's folders cannot be made.
    """

    def __init__(
        self, framework: Framework, job: MutableMapping[str, str], address: str, complain: Complain
    ) -> None:
        self._framework = framework
        self._exec_id = job["DLI_EXECID"]
        self._result = ResultDir(Path(job["RESULT_DIR"]))
        self._address = address
        self._complain = complain
        self._hosts = HostChecker()
        self._meeting: tuple[str, int] | None = None
        for name in environment.OF_A_PROCESS:
            job.pop(name, None)

    @classmethod
    def of(
        cls,
        job: MutableMapping[str, str],
        address: str,
        complain: Complain = lambda message: print(message, file=sys.stderr),
    ) -> "Workers | None":
        """Those of the job with these variables; None if it is none for WMLA. What is ours is taken out."""
        framework = job.pop(environment.FRAMEWORK_VARIABLE, None)
        return None if framework is None else cls(Framework(framework), job, address, complain)

    @property
    def is_gang(self) -> bool:
        """Whether all processes run together or none."""
        return not self._framework.is_elastic

    def slots(self, shown: Sequence[Slot]) -> tuple[Slot, ...]:
        """A slot for each process."""
        return gang.processes(self._framework, shown)

    def printed(self, worker: int, stream: str) -> Path:
        """The file for what a worker prints to `stream`."""
        return self._result.printed(executor_id(self._exec_id, worker + 1), stream)

    def variables(self, worker: Worker, slots: Sequence[Slot]) -> dict[str, str]:
        """What a worker gets besides; its folders are made. One that goes without has to see for itself.

        Args:
            worker: one that is to be started.
            slots: of all.
        """
        host = worker.slot.host if self._hosts.is_remote(worker.slot.host) else node()
        try:
            self._result.make(executor_id(self._exec_id, worker.id + 1), host)
        except OSError as error:
            self._complain(
                f"executor {worker.id + 1} starts without its folders: {error.filename}: {error.strerror}"
            )
        found = environment.of_worker(self._exec_id, self._result, worker.id, host)
        if self._framework is not Framework.GANG:
            return found
        self._meeting = self._meeting or self._meeting_place(slots[0].host)
        return found | environment.of_member(gang.members(slots)[worker.slot.key], *self._meeting)

    def _meeting_place(self, host: str) -> tuple[str, int]:
        """Where the first process of a gang listens."""
        if self._hosts.is_remote(host):
            return resolve(host) or host, random.choice(REMOTE_PORTS)
        with socket.socket() as probe:
            probe.bind((self._address, 0))
            return self._address, int(probe.getsockname()[1])
