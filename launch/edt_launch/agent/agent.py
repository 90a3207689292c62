"""The process on a host that starts a job's workers, passes on what they print, and ends them.

It hears from its launcher on standard input and answers on standard output, see `protocol`; `lifecycle`
decides what to do, and `worker_processes` does it. This process holds no code of users. It has one thread,
which waits for nobody.

What finds and kills processes is imported when it is needed, because importing it takes time.
"""

import os
import selectors
import sys
import time
from typing import TYPE_CHECKING

from edt_launch.agent import lifecycle, protocol
from edt_launch.agent.connection import LauncherConnection
from edt_launch.agent.local_job import LocalJob
from edt_launch.agent.network.probing import Prober
from edt_launch.agent.ports import reserve_port
from edt_launch.agent.system import subreaper
from edt_launch.agent.warm.server import CHUNK
from edt_launch.agent.worker_processes import WorkerProcesses
from edt_launch.core.errors import StartError
from edt_launch.core.system import ports

if TYPE_CHECKING:
    from edt_launch.agent.system.usage import UsageMeter

USAGE_INTERVAL = 10.0
"""Seconds between two measurements of what the workers use."""


class Agent:
    """An agent with the descriptors over which it talks to its launcher."""

    def __init__(self, reading: int, writing: int) -> None:
        self._selector = selectors.DefaultSelector()
        self._launcher = LauncherConnection(self._selector, reading, writing, self._obey, self._close)
        self._job: LocalJob | None = None
        """None before the first order."""
        self._workers = WorkerProcesses(self._selector, self._launcher.send, self._launcher.stop_hearing)
        self._prober = Prober(self._selector, self._launcher.send)
        self._meter: UsageMeter | None = None
        """None before the first worker."""
        self._measured_at = 0.0

    def run(self) -> None:
        """Serve until the launcher is gone, and every worker with it."""
        with subreaper.woken_by_children() as wakeup:
            self._launcher.open()
            self._selector.register(wakeup, selectors.EVENT_READ, lambda: wakeup.recv(CHUNK))
            while not self._workers.is_over:
                self._turn()
            if self._meter is not None:
                self._meter.close()
            self._reap()
            self._launcher.send(protocol.Swept(self._workers.sweep()))
        if self._job is not None:
            self._job.close()
        self._launcher.flush()

    def _turn(self) -> None:
        due, measuring = self._workers.deadline, self._measuring_at
        first = min((at for at in (due, self._prober.deadline, measuring) if at is not None), default=None)
        timeout = None if first is None else max(0.0, first - time.monotonic())
        for key, mask in self._selector.select(timeout):
            if mask & selectors.EVENT_READ and not self._workers.is_over:
                key.data()
        self._reap()
        if due is not None and time.monotonic() >= due:
            self._workers.tick()
        self._prober.tick()
        if measuring is not None and time.monotonic() >= measuring:
            self._measure()
        self._launcher.send_rest()
        self._workers.send_requests()

    def _reap(self) -> None:
        for pid, exit_code in subreaper.reap():
            is_worker = self._workers.take_ended(pid, exit_code)
            files = self._job.files if self._job is not None else None
            if not is_worker and files is not None and files.unpacked(pid):
                self._begin()

    @property
    def _measuring_at(self) -> float | None:
        """When what the workers use is measured next; None without any."""
        return None if self._workers.devices is None else self._measured_at + USAGE_INTERVAL

    def _measure(self) -> None:
        if self._meter is None:
            from edt_launch.agent.system.usage import UsageMeter

            self._meter = UsageMeter()
        self._measured_at = now = time.monotonic()
        if (usage := self._meter.measure(now, self._workers.devices or ())) is not None:
            self._launcher.send(usage)

    # Orders.

    def _close(self) -> None:
        self._workers.take(lifecycle.Closed())

    def _obey(self, order: protocol.Order) -> None:
        match order:
            case protocol.Setup():
                self._set_up(order)
            case protocol.Start() | protocol.Terminate() | protocol.Kill() | protocol.Renew():
                self._workers.take(order)
            case protocol.Reserve():
                self._reserve()
            case protocol.Listen():
                self._listen()
            case protocol.Probe():
                self._prober.begin(order)
            case protocol.WindowUpdate(size):
                self._workers.printing.taken(size)
            case protocol.Close():
                self._close()
            case protocol.Code() | protocol.Put() | protocol.Piece() | protocol.Fetch() | protocol.List():
                assert self._job is not None
                if self._job.take(order):
                    self._begin()

    def _set_up(self, setup: protocol.Setup) -> None:
        if setup.sweeps:
            _sweep_host(setup)
        try:
            self._job = job = LocalJob(setup, self._launcher.send)
        except OSError as error:
            sys.exit(f"edt agent: no folder for the job can be made: {error.filename}: {error.strerror}")
        self._workers.set_up(job)
        folder = None if job.files is None else str(job.files.output)
        self._launcher.send(protocol.Hello(protocol.VERSION, os.getpid(), folder))
        if job.files is None:
            self._begin()

    def _begin(self) -> None:
        """Everything is here that workers need: get ready to start them."""
        assert self._job is not None
        try:
            self._job.prepare()
        except StartError as error:
            sys.exit(f"edt agent: {error}")
        self._workers.begin()

    def _reserve(self) -> None:
        assert self._job is not None
        try:
            port = reserve_port(ports=ports.range_in(self._job.environment))
        except StartError as error:
            sys.exit(f"edt agent: {error}")
        self._launcher.send(protocol.Reserved(port))

    def _listen(self) -> None:
        assert self._job is not None
        try:
            port = self._prober.listen(ports.range_in(self._job.environment))
        except StartError as error:  # then nobody finds out whether this host is reached; workers go on
            print(f"edt agent: {error}", file=sys.stderr, flush=True)
        else:
            self._launcher.send(protocol.Listening(port))


def _sweep_host(setup: protocol.Setup) -> None:
    """Kill what an earlier agent of the job has left on the host."""
    from edt_launch.agent.system import processes

    try:
        left = processes.sweep_host(setup.environment)
    except processes.LaterRunError as error:
        sys.exit(f"edt agent: {error}")
    if left:
        numbers = ", ".join(sorted(str(process.pid) for process in left))
        sys.exit(f"edt agent: processes that an earlier agent has left cannot be ended: {numbers}")
