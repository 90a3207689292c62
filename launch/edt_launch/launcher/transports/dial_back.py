"""Agents that connect to the launcher, over TLS, with the job's token.

Something else starts them on their hosts: a rank of mpirun, an actor, a pod. `agent.dial_back` is their end
of the connection. A thread of its own listens, checks who comes, and passes on what both sides send; an agent
that is here before it is wanted waits.
"""

import asyncio
import contextlib
import hmac
import logging
import queue
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from edt_launch.agent.network.invitation import Answer, Greeting, Invitation, Outcome
from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.network import LOOPBACK, interfaces
from edt_launch.core.errors import HOST_LOST, MAX_SHOWN_CHARACTERS, StartError
from edt_launch.core.run_options import RunOptions
from edt_launch.core.system.ports import PortRange
from edt_launch.launcher.transports.admission import Refusals, refusal_of
from edt_launch.launcher.transports.greeting_listener import GreetingListener
from edt_launch.launcher.transports.relay import AgentStreams
from edt_launch.launcher.transports.transport import AGENT, Connection, Streams, Transport, opened

log = logging.getLogger(__name__)

RETURN_TIMEOUT = 5.0
"""Seconds that an agent has to connect again after it has ended, to be told how the job has ended."""

POLL = 0.02
"""Seconds between two looks whether it has."""

VIRTUAL_INTERFACES = ("docker", "virbr", "lo")
"""What the names of interfaces begin with that do not lead to other machines."""


def addresses(interface: str | None = None) -> list[str]:
    """The addresses of this machine by which others may reach it, the loopback last."""
    known = interfaces()
    if interface is not None:
        return list(known.get(interface, ()))
    named = [at for name, every in known.items() if not name.startswith(VIRTUAL_INTERFACES) for at in every]
    return [*named, LOOPBACK]


@dataclass(eq=False)
class _AgentConnection:
    """An agent that is connected."""

    streams: AgentStreams
    instance: str
    requested: "asyncio.Future[_HostConnection]"
    """Done when the agent is wanted."""

    def tell(self, outcome: Outcome) -> None:
        """Tell an agent that is not wanted how the job has ended."""
        if not self.requested.done():
            self.streams.write(outcome.text)


class _HostConnection(Connection):
    """The connection to a host whose agent has come, or is awaited."""

    def __init__(self, host: str, release: Callable[["_HostConnection"], None]) -> None:
        self.host = host
        self.pair: Future[tuple[socket.socket, socket.socket]] = Future()
        """What `opened` takes, as soon as the agent is there."""
        self.is_over = False
        self._release = release

    @contextlib.asynccontextmanager
    async def streams(self) -> AsyncIterator[Streams]:
        async with opened(*await asyncio.wrap_future(self.pair)) as streams:
            yield streams

    async def ended(self, timeout: float) -> int:
        """`HOST_LOST`: an agent that ends says itself how."""
        self._release(self)
        return HOST_LOST

    def withdraw(self) -> None:
        self._release(self)

    def kill(self) -> None:
        self._release(self)


class DialBack(Transport):
    """Takes the agents that dial back. An engine that starts them overrides `start` and `stop`.

    Args:
        listens_at: addresses that are put into the invitation; this machine's by default.
        own: the name of a host that has an agent of another transport.
        ports: to listen on one of; None for any.

    Raises:
        PortsUsedError: none of `ports` is free.
    """

    name: ClassVar[str] = "dial-back"
    by_name_only: ClassVar[bool] = True

    def __init__(
        self, listens_at: Sequence[str] = (), own: str | None = None, ports: PortRange | None = None
    ) -> None:
        from edt_launch.core.system.certificates import server_context  # cryptography takes long to import

        context, fingerprint = server_context()
        self._refusals = Refusals()
        self._listener = GreetingListener(context, ports, self._admit, self._refusals.add)
        self.invitation = Invitation(
            list(listens_at) or addresses(), self._listener.port, fingerprint, secrets.token_urlsafe(32)
        )
        self._own = own
        self._agents: dict[str, _AgentConnection] = {}
        self._addresses: dict[str, str] = {}
        self._left: dict[str, float] = {}
        """When the connection of a host has ended that has not come again, by the clock of the loop."""
        self._outcome: Outcome | None = None
        self._numbers: dict[str, int] = {}
        self._arrivals: queue.SimpleQueue[HostSlots] = queue.SimpleQueue()
        self._requested: dict[str, _HostConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._closed = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="edt-dial-back", daemon=True)
        self._thread.start()

    @classmethod
    def detect(cls, options: RunOptions, environment: Mapping[str, str]) -> Self | None:
        """None: somebody has to hand out the invitation."""
        return None

    def start(self, host: str) -> None:
        """Have an agent with `invitation` started on a host; in a thread of its own, so it may take its time.

        Raises:
            StartError: it cannot be started.
        """

    def stop(self, host: str) -> None:
        """Have the agent of a host ended, which is not connected any more; as `start`."""

    def give_up(self, host: str, reason: str) -> None:
        """No agent will come from a host that is awaited; in any thread."""
        self._soon(self._give_up, host, reason)

    def open(  # noqa: D102 - whatever has started the agent has chosen its command
        self, host: str, marks: Mapping[str, str], agent: Sequence[str] = AGENT
    ) -> Connection:
        wanted = _HostConnection(host, lambda wanted: self._soon(self._release, wanted))
        self._soon(self._request, wanted)
        return wanted

    def arrival(self, timeout: float) -> HostSlots | None:
        """The next agent that has come, with what its host has; None if none comes for so many seconds."""
        try:
            return self._arrivals.get(timeout=timeout)
        except queue.Empty:
            return None

    def number(self, host: str) -> int:
        """That of the host's greeting."""
        return self._numbers[host]

    def connected(self) -> set[str]:
        """The hosts whose agents are connected now."""
        return {*self._agents}

    @property
    def refusals(self) -> Sequence[str]:
        """Who was refused, and why; at most `admission.MAX_REFUSALS`."""
        return self._refusals.all

    def address(self, host: str) -> str | None:  # noqa: D102
        return self._addresses.get(host)

    def explain(self, host: str, last_lines: Sequence[str]) -> str | None:  # noqa: D102
        return self._refusals.of(host)

    def describe(self, host: str) -> str:  # noqa: D102
        return f"the connection to the agent of {host}"

    def close(self) -> None:
        """Tell the agents that wait that they are not needed any more."""
        self._soon(self._closed.set)
        self._thread.join()

    def dismiss(self, exit_code: int) -> None:
        """Tell all agents that the job has ended so, those too that are about to connect again; close."""
        self._soon(self._dismiss, Outcome(exit_code))
        self._thread.join()

    def _dismiss(self, outcome: Outcome) -> None:
        if self._outcome is None:
            self._outcome = outcome
            for agent in self._agents.values():
                agent.tell(outcome)
            self._keep(self._close_when_told(self._loop.time() + RETURN_TIMEOUT))

    async def _close_when_told(self, deadline: float) -> None:
        while (now := self._loop.time()) < deadline and (
            any(agent.requested.done() for agent in self._agents.values())
            or any(now - left < RETURN_TIMEOUT for left in self._left.values())
        ):
            await asyncio.sleep(POLL)
        self._closed.set()

    def _soon(self, function: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, and all connections
            self._loop.call_soon_threadsafe(function, *arguments)

    # The thread.

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        accepting = asyncio.create_task(self._listener.accept())
        await self._closed.wait()
        accepting.cancel()
        self._listener.close()
        agents = [*self._agents.values()]
        for agent in agents:
            agent.streams.close()
        for agent in agents:
            await agent.streams.closed(1.0)

    def _admit(
        self, greeting: Greeting, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, peer: str
    ) -> None:
        agent = _AgentConnection(AgentStreams(reader, writer), greeting.instance, self._loop.create_future())
        host, present = greeting.host, self._agents.get(greeting.host)
        is_trusted = hmac.compare_digest(greeting.token.encode(), self.invitation.token.encode())
        refused = "its token is not this job's: start it with the job's invitation"
        if is_trusted:
            there = self._own if host == self._own else None if present is None else present.instance
            refused = refusal_of(greeting, there)
        agent.streams.write(Answer(refused).text)
        if refused:
            agent.streams.close()
            self._refusals.add(
                host, f"the agent of {host[:MAX_SHOWN_CHARACTERS]!r} ({peer}) is refused: {refused}"
            )
            if is_trusted and present is None and (wanted := self._requested.get(host)) is not None:
                self._fail(wanted, refused)
            return
        self._refusals.forget(host)
        self._left.pop(host, None)
        if present is not None:  # its other end knows already that this connection is broken
            present.streams.abort()
        self._agents[host] = agent
        if self._outcome is not None:
            agent.tell(self._outcome)
        self._numbers[host] = greeting.number
        self._addresses[host] = peer
        self._arrivals.put(HostSlots(host, greeting.slots, tuple(greeting.devices) or None))
        self._keep(self._hold_until_requested(host, agent))
        if (wanted := self._requested.get(host)) is not None and not wanted.pair.done():
            agent.requested.set_result(wanted)

    async def _hold_until_requested(self, host: str, agent: _AgentConnection) -> None:
        """Keep an agent until it is wanted, and then connect it."""
        said = self._loop.create_task(agent.streams.read())
        waits: list[asyncio.Future[Any]] = [said, agent.requested]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        try:
            if said.done():  # it has left, or speaks before it is asked
                return
            said.cancel()
            (reports, its_reports), (orders, its_orders) = socket.socketpair(), socket.socketpair()
            agent.requested.result().pair.set_result((its_reports, its_orders))
            await agent.streams.relay(reports, orders)
        finally:
            agent.streams.close()
            if self._agents.get(host) is agent:
                del self._agents[host]
                if agent.requested.done():  # one that was not wanted does not come again
                    self._left[host] = self._loop.time()

    # What the launcher wants.

    def _request(self, wanted: _HostConnection) -> None:
        if self._closed.is_set():
            self._fail(wanted, "the job has ended")
            return
        self._requested[wanted.host] = wanted
        agent = self._agents.get(wanted.host)
        if agent is not None and not agent.requested.done():
            agent.requested.set_result(wanted)
        else:
            self._in_thread(self.start, wanted)

    def _release(self, wanted: _HostConnection) -> None:
        if wanted.is_over:
            return
        wanted.is_over = True
        self._fail(wanted, f"{wanted.host} is not needed any more")
        if self._requested.get(wanted.host) is wanted:
            del self._requested[wanted.host]
        agent = self._agents.get(wanted.host)
        if agent is not None and agent.requested.done() and agent.requested.result() is wanted:
            agent.streams.abort()
        self._in_thread(self.stop, wanted)

    def _give_up(self, host: str, reason: str) -> None:
        if (wanted := self._requested.get(host)) is not None:
            self._fail(wanted, reason)

    def _fail(self, wanted: _HostConnection, reason: str) -> None:
        if not wanted.pair.done():
            wanted.pair.set_exception(StartError(reason))

    def _in_thread(self, function: Callable[[str], None], wanted: _HostConnection) -> None:
        """Have an engine do something that may take its time, or never end."""

        def call() -> None:
            try:
                function(wanted.host)
            except StartError as error:
                self._soon(self._fail, wanted, str(error))
            except Exception as error:
                log.warning("%s: %s of %s failed", self.name, function.__name__, wanted.host, exc_info=error)
                self._soon(self._fail, wanted, f"{type(error).__name__}: {error}")

        threading.Thread(target=call, name=f"edt-{self.name}", daemon=True).start()

    def _keep(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
