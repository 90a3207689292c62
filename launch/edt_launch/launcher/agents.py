"""The agents of a job, one a host: their processes and the streams to and from them, served by one thread.

An agent on this host is a child, connected by a pair of sockets; on another one it is reached through the
pipes of a connector's command. Workers are asked for only after an agent has said hello, so that one that was
never heard of has started none.
"""

import contextlib
import os
import selectors
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from edt_launch.agent.processes import JOB_VARIABLE
from edt_launch.agent.protocol import VERSION, Hello, Kill, Order, ProtocolError, Report, Setup, Start, Taken
from edt_launch.core.errors import StartError
from edt_launch.launcher.connectors.connector import AGENT, Connector
from edt_launch.launcher.link import CHUNK, Link


@dataclass(frozen=True)
class AgentOutput:
    """An agent, or the command that leads to it, has said something about itself."""

    text: str


@dataclass(frozen=True)
class Lost:
    """An agent has ended, or the way to it.

    Attributes:
        exit_code: of the agent, or of the command that leads to it; negative for a signal.
        explanation: what to tell about its workers, line by line.
        has_connected: whether it had ever said hello.
    """

    exit_code: int
    explanation: tuple[str, ...] = ()
    has_connected: bool = True


@dataclass(frozen=True)
class AllEnded:
    """The last agent has ended, after `Agents.close`; or there was a mistake of ours."""

    error: BaseException | None = None


Happening = Report | AgentOutput | Lost | AllEnded

Notify = Callable[[str, Happening], None]
"""Called with a host, empty for `AllEnded`, and what has happened there, from the thread of the agents."""


class Agents:
    """Starts agents, sends orders to them and hears their reports.

    Args:
        setup: what the workers have in common; what differs from host to host is filled in.
        logs: the folder of the warm servers' logs.
        is_remote: whether a host is another machine.
        connector: starts the agents of those.
        notify: told of everything that happens.
    """

    def __init__(
        self, setup: Setup, logs: Path, is_remote: Callable[[str], bool], connector: Connector, notify: Notify
    ) -> None:
        self._setup = setup
        self._logs = logs
        self._is_remote = is_remote
        self._connector = connector
        self._notify = notify
        self._links: dict[str, Link] = {}
        self._known: set[str] = set()
        """Hosts that have had an agent."""
        self._lock = threading.RLock()
        self._selector = selectors.DefaultSelector()
        self._wakeup, self._woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._selector.register(self._wakeup, selectors.EVENT_READ)
        self._is_closing = False
        self._thread = threading.Thread(target=self._serve, name="edt-agents", daemon=True)
        self._thread.start()

    @property
    def pids(self) -> list[int]:
        """The processes of the agents, or of the commands that lead to them."""
        with self._lock:
            return [link.process.pid for link in self._links.values()]

    @property
    def job(self) -> str:
        """The mark of the job's processes."""
        return self._setup.environment[JOB_VARIABLE]

    def is_here(self, host: str) -> bool:
        """Whether a host is this machine."""
        return not self._is_remote(host)

    def open(self, host: str) -> None:
        """Start the agent of a host, unless it runs.

        Raises:
            StartError: it cannot be executed, or the job is ending.
        """
        with self._lock:
            if host in self._links:
                return
            if self._is_closing:
                raise StartError("the job is ending")
            is_remote = self._is_remote(host)
            setup = replace(
                self._setup,
                environment={**self._setup.environment, "HOROVOD_HOSTNAME": host},
                log=str(self._logs / f"warm.{host}.log"),
                inherits=is_remote,
                sweeps=host in self._known,
            )
            words = self._connector.command(host) if is_remote else AGENT
            self._known.add(host)
            self._links[host] = Link(words, None if is_remote else setup.environment)
        self._send(host, setup)

    def start(self, host: str, worker: int, environment: Mapping[str, str]) -> None:
        """Start a worker with variables of its own.

        Raises:
            StartError: there is no agent, and none can be executed.
        """
        self.open(host)
        self._send(host, Start(worker, dict(environment)))

    def kill(self, host: str, worker: int) -> None:
        """Kill a worker and everything that it has started."""
        self._send(host, Kill(worker))

    def taken(self, host: str, size: int) -> None:
        """So many more bytes of output have been dealt with."""
        self._send(host, Taken(size))

    def close(self) -> None:
        """Have every agent end everything that its workers have left, and itself."""
        with self._lock:
            self._is_closing = True
            for link in self._links.values():
                link.is_closing = True
        self._wake()

    def abandon(self) -> None:
        """Kill all agents; the kernel kills what they have started here."""
        with self._lock:
            for link in self._links.values():
                link.process.kill()

    def join(self) -> None:
        """Wait for the last agent's end, after `close`. Nothing else may be called then."""
        self._thread.join()
        os.close(self._wakeup)
        os.close(self._woken)

    def _send(self, host: str, order: Order) -> None:
        with self._lock:
            link = self._links.get(host)
            if link is not None:
                link.put(order)
        self._wake()

    def _wake(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._woken, b"!")

    # The thread.

    def _serve(self) -> None:
        error: BaseException | None = None
        try:
            self._serve_links()
        except BaseException as caught:  # noqa: BLE001 - it is raised again where the job is run
            error = caught
            self.abandon()
            for link in self._links.values():
                link.process.wait()
                link.close(self._selector)
        self._selector.close()
        self._notify("", AllEnded(error))

    def _serve_links(self) -> None:
        while True:
            with self._lock:
                links = dict(self._links)
                is_over = self._is_closing and not links
                for host, link in links.items():
                    link.watch(self._selector, host)
            if is_over:
                return
            for key, mask in self._selector.select():
                if key.fileobj == self._wakeup:
                    with contextlib.suppress(BlockingIOError):
                        os.read(self._wakeup, CHUNK)
                    continue
                host, link = key.data
                if mask & selectors.EVENT_WRITE:
                    with self._lock:
                        link.flush()
                if mask & selectors.EVENT_READ:
                    self._read(host, link, key.fd)

    def _read(self, host: str, link: Link, descriptor: int) -> None:
        if self._links.get(host) is not link:  # it has ended in the same turn
            return
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            link.unwatch(self._selector, descriptor)
            if not link.is_read:
                self._end(host, link)
            return
        if descriptor == link.errors:
            for text in link.words(data):
                self._notify(host, AgentOutput(text))
            return
        try:
            for report in link.reader.feed(data):
                self._take(host, link, report)
        except ProtocolError as error:
            self._refuse(host, link, f"the agent has sent {error}")

    def _take(self, host: str, link: Link, report: Report) -> None:
        if isinstance(report, Hello):
            if report.version != VERSION:
                versions = f"version {report.version} of the agent's messages, this one version {VERSION}"
                self._refuse(
                    host, link, f"edt_launch on {host} has {versions}: install the same on all hosts"
                )
                return
            with self._lock:
                link.greet()
        self._notify(host, report)

    def _refuse(self, host: str, link: Link, reason: str) -> None:
        link.last_words.append(f"edt-launch: {reason}")
        self._notify(host, AgentOutput(reason))
        link.process.kill()

    def _end(self, host: str, link: Link) -> None:
        for text in link.rest():
            self._notify(host, AgentOutput(text))
        link.close(self._selector)
        exit_code = link.process.wait()
        with self._lock:
            del self._links[host]
            is_expected = link.is_closing and exit_code == 0
        if is_expected:
            return
        said = [*link.last_words]
        is_remote = self._is_remote(host)
        hint = self._connector.explain(host, said) if is_remote else None
        what = f"{self._connector.name} to {host}" if is_remote else "the agent of this host"
        how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
        said.append(f"edt-launch: {hint or f'{what} {how}'}")
        self._notify(host, Lost(exit_code, tuple(said), link.has_connected))
