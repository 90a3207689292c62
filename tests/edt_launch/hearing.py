"""Agents of a launcher, and what is heard of them."""

import os
import queue
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edt_launch.agent.protocol import Setup
from edt_launch.cluster.allocation import HostSlots
from edt_launch.core.run_options import RunOptions
from edt_launch.launcher.hosts.agents import Agents
from edt_launch.launcher.transports.choice import Transports
from edt_launch.launcher.transports.transport import Transport
from edt_messages.runs import JobRun

PROGRAM = """
import os, time
os.write(1, f"{os.environ['EDT_WORKER']} {os.environ['HOROVOD_HOSTNAME']}\\n".encode())
time.sleep(60)
"""


class Hearing:
    """Agents, and what is heard of them. Hosts whose name begins with "far" are elsewhere."""

    def __init__(
        self,
        folder: Path,
        transport: Transport | None = None,
        variables: Mapping[str, str] | None = None,
        run: JobRun | None = None,
        **limits: float,
    ) -> None:
        self.heard: queue.Queue[tuple[str, Any]] = queue.Queue()
        run = run or JobRun(uuid.uuid4().hex, 1)
        command = (sys.executable, "-c", PROGRAM)
        environment = {**os.environ, **run.variables}
        setup = Setup(command, environment, str(folder), forks=False, sweeps=run.number > 1)
        self.transports = Transports(
            RunOptions(), variables or {}, lambda host: host.startswith("far"), filter(None, [transport])
        )
        if transport is not None:
            self.transports.follow(HostSlots(host, 1, None, transport.name) for host in ("far", "far off"))
        self.agents = Agents(
            setup,
            folder,
            self.transports,
            lambda event: self.heard.put((event.host, event.happening)),
            **limits,
        )

    def until(self, kind: Any) -> tuple[str, Any]:
        """The next of that kind."""
        while True:
            host, happening = self.heard.get(timeout=60)
            if isinstance(happening, kind):
                return host, happening

    def close(self) -> None:
        self.agents.close()
        self.agents.abandon()
        self.agents.join()
        self.transports.close()
