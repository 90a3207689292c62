"""The agents of a job, one a host, and the connections to them, served by one thread.

How a host's agent is reached is its transport's business. Workers are asked for only after an agent has said
hello, so that one that was never heard of has started none.
"""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from edt_launch.agent import protocol
from edt_launch.agent.system.processes import JOB_VARIABLE
from edt_launch.core.errors import StartError
from edt_launch.launcher.hosts.host_agent import HostAgent
from edt_launch.launcher.hosts.host_events import AllEnded, HostEvent
from edt_launch.launcher.hosts.host_files import HostFiles
from edt_launch.launcher.transports.choice import Transports
from edt_messages.messages import Checkpointed
from edt_messages.runs import RUN

ANSWER_TIMEOUT = 300.0
"""Seconds that an agent has to say hello, or to start a worker; it waits for a warm server no longer than
`agent.lifecycle.REQUEST_TIMEOUT`. One that takes longer is killed."""

MARKS = (JOB_VARIABLE, RUN, "HOROVOD_HOSTNAME")
"""Variables by which an agent on this host is found again; it has no others of its workers'."""


class Agents:
    """Starts agents, sends orders to them and hears their reports.

    What differs from host to host is filled in in `setup`. `transports` lead to the hosts.
    `notify` is told of everything that happens, in the thread of the agents. An agent that does not answer
    for `timeout` seconds is killed. One on another host has a lease, and is given up after
    `host_agent.SILENCE_LIMIT`. A host that does not see the output directory gets `files`; None if all do.
    """

    _group: asyncio.TaskGroup

    def __init__(
        self,
        setup: protocol.Setup,
        logs: Path,
        transports: Transports,
        notify: Callable[[HostEvent], None],
        timeout: float = ANSWER_TIMEOUT,
        files: HostFiles | None = None,
    ) -> None:
        self._setup = setup
        self._files = files
        self._timeout = timeout
        self._logs = logs
        self._transports = transports
        self._notify = notify
        self._agents: dict[str, HostAgent] = {}
        self._known: set[str] = set()
        """Hosts that have had an agent."""
        self._lock = threading.Lock()
        """The loop runs as long as there is an agent, or none has asked for the end."""
        self._probe: tuple[int, dict[str, str]] = (0, {})
        """The number of the latest probe, and the addresses of its hosts until all of them listen."""
        self._is_closing = False
        self.is_collecting = False
        """Whether files are being fetched, after which the agents end."""
        self._closed = asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._all_served = self._loop.create_task(self._serve_all())
        self._thread = threading.Thread(target=self._run, name="edt-agents", daemon=True)
        self._thread.start()

    @property
    def pids(self) -> list[int]:
        """The processes on this machine that are agents, or lead to them."""
        with self._lock:
            return [pid for agent in self._agents.values() for pid in agent.connection.pids]

    @property
    def job(self) -> str:
        """The mark of the job's processes."""
        return self._setup.environment[JOB_VARIABLE]

    def is_here(self, host: str) -> bool:
        """Whether a host is this machine."""
        return not self._transports.is_remote(host)

    def open(self, host: str) -> None:
        """Start the agent of a host, unless it runs.

        Raises:
            StartError: it cannot be executed, or the job is ending.
        """
        with self._lock:
            if host in self._agents:
                return
            if self._is_closing:
                raise StartError("the job is ending")
            transport = self._transports.of(host)
            setup = replace(
                self._setup,
                environment={**self._setup.environment, "HOROVOD_HOSTNAME": host},
                log=str(self._logs / f"warm.{host}.log"),
                inherits=transport.is_remote,
                sweeps=transport.is_remote or self._setup.sweeps or host in self._known,
                lease=protocol.LEASE if transport.is_remote else None,
            )
            if transport.is_remote and self._files is not None:
                output, nonce = str(self._files.output), self._files.nonce
                setup = replace(setup, output=output, nonce=nonce, python=sys.executable)
            self._known.add(host)
            marks = {name: setup.environment[name] for name in MARKS if name in setup.environment}
            self._agents[host] = agent = HostAgent(
                host,
                transport,
                self._transports.open(host, marks),
                self._files,
                self._notify,
                self._send_probe,
                self._timeout,
            )
            self._create_task(lambda: self._serve(host, agent, setup))

    def start(
        self,
        host: str,
        worker: int,
        environment: Mapping[str, str],
        meets_at: str | None = None,
        command: Sequence[str] = (),
    ) -> None:
        """Start a worker with variables of its own, and a command of its own if that is not empty.

        With `meets_at` it also finds the port that the agent of that host has reserved: one for all workers.

        Raises:
            StartError: there is no agent, and none can be executed.
        """
        self.open(host)
        order = protocol.Start(worker, dict(environment), tuple(command))
        if meets_at is None:
            self._send(host, order)
            return
        self.open(meets_at)
        with self._lock:
            agent, meeting = self._agents.get(host), self._agents.get(meets_at)
            if agent is not None and meeting is not None:
                self._loop.call_soon_threadsafe(meeting.link.start_with_port, agent.link, order)

    def terminate(self, host: str, worker: int, *, others: bool = False) -> None:
        """Send SIGTERM to a worker's process, or with `others` to those that it has started instead."""
        self._send(host, protocol.Terminate(worker, others))

    def kill(self, host: str, worker: int) -> None:
        """Kill a worker and everything that it has started."""
        self._send(host, protocol.Kill(worker))

    def taken(self, host: str, size: int) -> None:
        """So many more bytes of output have been dealt with."""
        self._send(host, protocol.WindowUpdate(size))

    def probe(self, number: int, addresses: Mapping[str, str]) -> None:
        """Have the agents of these hosts find out which of the others they reach; each reports `Probed`.

        `addresses` are those of the hosts; one without an agent is left out.
        """
        with self._lock:
            if self._agents:
                self._loop.call_soon_threadsafe(self._begin_probe, number, dict(addresses))

    def has_own_disk(self, host: str) -> bool:
        """Whether a host has said that it does not see the output directory."""
        agent = self._agents.get(host)
        return agent is not None and agent.transfers.folder is not None

    def fetch_checkpoint(self, host: str, worker: int, checkpointed: Checkpointed) -> None:
        """Fetch a checkpoint that a worker has written; `CheckpointFetched` follows."""
        self._transfer(host, lambda agent: agent.fetch_checkpoint(worker, checkpointed))

    def put_checkpoint(self, host: str, worker: int, folder: str) -> None:
        """Have the newest checkpoint in a folder of the host; `CheckpointPut` follows."""
        self._transfer(host, lambda agent: agent.put_checkpoint(worker, folder))

    def finish(self, first: str | None) -> None:
        """Fetch what workers have written on hosts that do not see the output directory; then close.

        Of files with the same name that of the host `first` counts.
        """
        with self._lock:
            if not self._is_closing and not self.is_collecting:
                self.is_collecting = True
                self._create_task(lambda: self._collect(first))

    def close(self) -> None:
        """Have every agent end everything that its workers have left, and itself."""
        with self._lock:
            if not self._is_closing:
                self._is_closing = True
                self._loop.call_soon_threadsafe(self._hang_up)

    def abandon(self) -> None:
        """Kill all agents; the kernel kills what they have started here."""
        with self._lock:
            for agent in self._agents.values():
                agent.connection.kill()

    def join(self) -> None:
        """Wait for the last agent's end, after `close`. Nothing else may be called then."""
        self._thread.join()

    def _send(self, host: str, order: protocol.Order) -> None:
        with self._lock:
            if (agent := self._agents.get(host)) is not None:
                self._loop.call_soon_threadsafe(agent.link.put, order)

    def _transfer(self, host: str, run: Callable[[HostAgent], Coroutine[None, None, None]]) -> None:
        with self._lock:
            if (agent := self._agents.get(host)) is not None:
                self._create_task(lambda: run(agent))

    def _create_task(self, run: Callable[[], Coroutine[None, None, None]]) -> None:
        self._loop.call_soon_threadsafe(lambda: self._group.create_task(run()))

    # The thread.

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            self._loop.run_until_complete(self._all_served)
        except BaseException as caught:  # noqa: BLE001 - it is raised again where the job is run
            error = caught.exceptions[0] if isinstance(caught, BaseExceptionGroup) else caught
        self._loop.close()
        self._notify(HostEvent("", AllEnded(error)))

    async def _serve_all(self) -> None:
        try:
            async with asyncio.TaskGroup() as self._group:
                await self._closed.wait()
        finally:
            with self._lock:  # there are agents only after a mistake of ours
                self._is_closing = True
                for agent in self._agents.values():
                    agent.connection.kill()
                    await agent.connection.ended(0.0)
                self._agents.clear()

    def _hang_up(self) -> None:
        self._closed.set()
        for agent in self._agents.values():
            agent.hang_up()

    def _begin_probe(self, number: int, addresses: dict[str, str]) -> None:
        self._probe = number, {host: address for host, address in addresses.items() if host in self._agents}
        for host in self._probe[1]:
            if self._agents[host].link.listening_at is None:
                self._agents[host].link.put(protocol.Listen())
        self._send_probe()

    def _send_probe(self) -> None:
        """Send the probe that is to be made, if all its agents listen."""
        number, addresses = self._probe
        links = {host: self._agents[host].link for host in addresses if host in self._agents}
        if len(links) < len(addresses) or any(link.listening_at is None for link in links.values()):
            return
        self._probe = number, {}
        at = {host: f"{address}:{links[host].listening_at}" for host, address in addresses.items()}
        for host, link in links.items():
            link.put(protocol.Probe(number, {other: at[other] for other in at if other != host}))

    async def _serve(self, host: str, agent: HostAgent, setup: protocol.Setup) -> None:
        lost = await agent.serve(self._group, setup)
        with self._lock:
            del self._agents[host]
        if lost is not None:
            self._notify(HostEvent(host, lost))

    async def _collect(self, first: str | None) -> None:
        fetched: set[str] = set()
        for _, agent in sorted(self._agents.items(), key=lambda item: item[0] != first):
            await agent.fetch_results(fetched)
        self.is_collecting = False
        self.close()
