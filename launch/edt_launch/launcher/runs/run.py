"""One run of a job's workers, from the first to the last process: what happens in it, and how it is ended."""

import contextlib
import logging
import os
import queue
import selectors
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from edt_launch.agent.protocol import Exited as ProcessEnded
from edt_launch.agent.protocol import Output, Setup, Swept, Usage
from edt_launch.agent.system import processes
from edt_launch.agent.system.processes import JOB_VARIABLE
from edt_launch.cluster.allocation import Allocation
from edt_launch.core.files.appender import Appender
from edt_launch.core.files.file_watch import Watch
from edt_launch.core.history import events
from edt_launch.core.history.event_log import stamped
from edt_launch.launcher.driver.driver import PAUSED, Driver, DriverSettings
from edt_launch.launcher.hosts.agents import Agents
from edt_launch.launcher.hosts.host_events import AgentOutput, AllEnded, HostEvent
from edt_launch.launcher.hosts.host_files import HostFiles
from edt_launch.launcher.hosts.host_usage import HostUsage
from edt_launch.launcher.transports.choice import Transports
from edt_launch.launcher.view.output import Line, LineReader
from edt_launch.membership import protocol
from edt_launch.membership.protocol import Slot, Worker

TICK = 0.05
"""Seconds between two looks at everything else."""

LOG_FORMAT = "%(asctime)s %(name)s: %(message)s"


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True)
class LeftBehind:
    """The workers have gone, and so many processes that they had left behind were killed."""

    count: int


Happening = events.Event | Line | Tick | LeftBehind
"""An event is the driver's."""


@dataclass(frozen=True)
class _Stopped:
    """The driver has ended; by a mistake of ours, if there is an error."""

    error: BaseException | None


_Queued = HostEvent | events.Event | Line | _Stopped


class DriverRun:
    """A driver and its agents. Leaving its context leaves no process of theirs on this machine.

    `setup` has the mark of the job's processes.
    """

    def __init__(
        self,
        setup: Setup,
        settings: DriverSettings,
        logs: Path,
        transports: Transports,
        files: HostFiles | None = None,
    ) -> None:
        self._job = setup.environment[JOB_VARIABLE]
        self._settings = settings
        self._transports = transports
        self._happened: queue.SimpleQueue[_Queued] = queue.SimpleQueue()
        self._wakeup, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._readers: dict[tuple[int, str], LineReader] = {}
        self._copies: dict[tuple[int, str], Appender] = {}
        self._swept = 0
        self._usage = HostUsage()
        self._agents = Agents(setup, logs, transports, self._notify, files=files)
        self._driver = Driver(settings, self._agents, self._put, self._print_line)
        self._thread = threading.Thread(target=self._drive, name="edt-driver", daemon=True)
        self._handler = _LogHandler(lambda text: self._put(Line(None, "stderr", text)))
        self._logger = logging.getLogger("edt_launch")
        self._logger.addHandler(self._handler)
        self._level = self._logger.level
        self._logger.setLevel(logging.INFO)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._driver.put(protocol.Abort("edt-launch ends"))
            self._agents.close()
            if kind is not None or self._thread.is_alive():
                self.kill()
            if self._thread.ident is not None:
                self._thread.join()
            else:
                self._driver.close()
            self._agents.join()
        finally:
            self._logger.removeHandler(self._handler)
            self._logger.setLevel(self._level)
            for copy in self._copies.values():
                copy.close()
            os.close(self._wakeup)
            os.close(self._woken)

    def open(self, allocation: Allocation) -> None:
        """Start the agents of all hosts, whose warm servers import what the workers need.

        Raises:
            StartError: an agent cannot be executed.
            UsageError: a host names a transport that cannot be used.
        """
        self._transports.follow(allocation.hosts)
        for host in allocation.hosts:
            if host.slots:
                self._agents.open(host.host)

    def start(self, allocation: Allocation) -> None:
        """Start the agents of all hosts, unless they run, and then the first workers; raises as `open`."""
        self.open(allocation)
        self.follow(allocation)
        self._thread.start()

    @property
    def given_up(self) -> Mapping[int, Worker]:
        """The workers, by their numbers, whose processes may be there still."""
        return self._driver.given_up

    @property
    def is_collecting(self) -> bool:
        """Whether the workers have ended, and what they have written is being fetched."""
        return self._agents.is_collecting

    def follow(self, allocation: Allocation) -> None:
        """Have workers in these slots.

        Raises:
            UsageError: a host names a transport that cannot be used.
        """
        self._transports.follow(allocation.hosts)
        slots = tuple(
            Slot(host.host, index, None if host.devices is None else host.devices[index])
            for host in allocation.hosts
            for index in range(host.slots)
        )
        self._driver.put(protocol.Desired(slots, allocation.generation, allocation.at_once))

    def terminate(self) -> None:
        """End the job."""
        self._driver.put(protocol.Abort("edt-launch was told to end"))

    def pause(self) -> None:
        """Have the state saved and all workers leave."""
        self._driver.put(protocol.PauseWanted(PAUSED))

    def kill(self) -> int:
        """Kill all processes; returns how many."""
        seen = {process for pid in self._agents.pids for process in processes.tree(pid)}
        count = processes.kill_job(None, self._job, seen)
        self._agents.abandon()
        return count

    def happenings(self, watch: Watch | None) -> Iterator[Happening]:
        """Everything that happens until all processes have ended, a `Tick` now and then.

        A `Tick` comes at once when `watch` wakes. Workers that print faster than this is taken in keep none
        from coming.
        """
        with selectors.DefaultSelector() as selector:
            selector.register(self._wakeup, selectors.EVENT_READ)
            if watch is not None:
                selector.register(watch, selectors.EVENT_READ)
            is_over = False
            while not is_over:
                ready = {key.fileobj for key, _ in selector.select(TICK if self._happened.empty() else 0.0)}
                until = time.monotonic() + TICK
                if self._wakeup in ready:
                    os.read(self._wakeup, 2**16)
                if watch is not None and watch in ready:
                    watch.clear()
                while not self._happened.empty() and time.monotonic() < until:
                    match self._happened.get():
                        case HostEvent(_, AllEnded(error)):
                            is_over = True
                            if error is not None:
                                raise error
                        case happening:
                            yield from self._take(happening)
                yield Tick()
        for reader in self._readers.values():
            yield from reader.close()
        self._readers.clear()
        self._swept += processes.sweep(self._job, (), 0.0)
        if self._swept:
            yield LeftBehind(self._swept)

    # From the other threads.

    def _drive(self) -> None:
        error: BaseException | None = None
        try:
            self._driver.run()
        except BaseException as caught:  # noqa: BLE001 - it is raised again where the job is run
            error = caught
        self._put(_Stopped(error))

    def _notify(self, event: HostEvent) -> None:
        self._put(event)
        self._driver.notify(event)

    def _print_line(self, worker: int, text: str) -> None:
        self._put(Line(worker, "stderr", text))

    def _put(self, happening: _Queued) -> None:
        self._happened.put(happening)
        with contextlib.suppress(OSError):  # it is full, or everything is over
            os.write(self._woken, b"!")

    # In the thread that runs the job.

    def _take(self, happening: _Queued) -> Iterator[Happening]:
        match happening:
            case _Stopped(error):
                if error is not None:
                    raise error
                self._agents.finish(self._driver.coordinator_host)
            case HostEvent(host, Output(worker, stream, data)):
                yield from self._print(worker, stream, data)
                self._agents.taken(host, len(data))
            case HostEvent(_, ProcessEnded(worker)):
                for stream in ("stdout", "stderr"):
                    reader = self._readers.pop((worker, stream), None)
                    yield from reader.close() if reader is not None else ()
            case HostEvent(host, AgentOutput(text)):
                yield Line(None, "stderr", f"{host}: {text}" if host else text)
            case HostEvent(host, Usage() as measured):
                if (used := self._usage.take(time.monotonic(), host, measured)) is not None:
                    yield stamped(used)
            case HostEvent(_, Swept(count)):
                self._swept += count
            case events.Event() | Line():
                yield happening

    def _print(self, worker: int, stream: str, data: bytes) -> Iterator[Line]:
        key = worker, stream
        reader = self._readers.get(key)
        if reader is None:
            reader = self._readers[key] = LineReader(stream, worker)
            path = self._settings.workers.copy_of(worker, stream)
            if path is not None and key not in self._copies:
                self._copies[key] = Appender(
                    path,
                    lambda text: self._put(Line(None, "stderr", text)),
                    limit=self._settings.max_log_size,
                )
        if (copy := self._copies.get(key)) is not None:
            copy.write_bytes(data)
            copy.flush()
        yield from reader.feed(time.monotonic(), data)


class _LogHandler(logging.Handler):
    def __init__(self, put: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self.setFormatter(logging.Formatter(LOG_FORMAT))
        self._put = put

    def emit(self, record: logging.LogRecord) -> None:
        """Take in a record."""
        self._put(self.format(record))
