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
import re
import secrets
import socket
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from edt_launch.agent import protocol
from edt_launch.agent.network.invitation import MAX_LINE, Answer, Greeting, Invitation, Outcome
from edt_launch.cluster.allocation import DEVICE, HOST, MAX_SLOTS, HostSlots
from edt_launch.cluster.network import LOOPBACK, interfaces
from edt_launch.core.errors import HOST_LOST, SHOWN, StartError
from edt_launch.core.run_options import RunOptions
from edt_launch.core.system.ports import PortRange, listening
from edt_launch.launcher.transports.transport import AGENT, Connection, Streams, Transport, opened
from edt_messages.keepalive import end_with_peer

log = logging.getLogger(__name__)

CHUNK = 2**16

GREETING_TIMEOUT = 10.0
"""Seconds that a connection has for TLS and its greeting."""

MAX_UNAUTHENTICATED = 128
"""Connections without a greeting at a time; the oldest is closed for a further one."""

MAX_REFUSALS = 20
"""Distinct refusals that are logged."""

PEER_TIMEOUT = 15.0
"""Seconds after which a connection fails whose other end acknowledges nothing."""

RETURN_TIMEOUT = 5.0
"""Seconds that an agent has to connect again after it has ended, to be told how the job has ended."""

POLL = 0.02
"""Seconds between two looks whether it has."""

VIRTUAL = ("docker", "virbr", "lo")
"""What the names of interfaces begin with that do not lead to other machines."""


def addresses(interface: str | None = None) -> list[str]:
    """The addresses of this machine by which others may reach it, the loopback last."""
    known = interfaces()
    if interface is not None:
        return list(known.get(interface, ()))
    named = [at for name, every in known.items() if not name.startswith(VIRTUAL) for at in every]
    return [*named, LOOPBACK]


def refusal_of(greeting: Greeting, present: str | None) -> str:
    """Why an agent with the job's token is refused; empty if it is taken.

    `present` is the instance that connects the agent of this host at present, if there is one.
    """
    if greeting.version != protocol.VERSION:
        return (
            f"edt_launch on {greeting.host} has version {greeting.version} of the agent's messages, this one "
            f"{protocol.VERSION}: install the same on all hosts"
        )
    if not re.fullmatch(HOST, greeting.host):
        return "its host name is no name: use letters, digits, '_', '.' and '-'"
    devices = greeting.devices
    is_device = all(isinstance(name, str) and re.fullmatch(DEVICE, name) for name in devices)
    is_one_each = is_device and (not devices or len(set(devices)) == len(devices) == greeting.slots)
    if not 0 <= greeting.slots <= MAX_SLOTS or not is_one_each:
        named = ", ".join(map(str, devices))[:SHOWN]
        return (
            f"{greeting.host} says that it has {greeting.slots} slots and the devices '{named}': expected "
            f"0 to {MAX_SLOTS} slots, and a device of its own for each or none"
        )
    if present not in (None, greeting.instance):
        return f"{greeting.host} has an agent already: give each host a name of its own, and one agent"
    return ""


@dataclass(eq=False)
class _AgentConnection:
    """An agent that is connected."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    instance: str
    requested: "asyncio.Future[_HostConnection]"
    """Done when the agent is wanted."""

    def tell(self, outcome: Outcome) -> None:
        """Tell an agent that is not wanted how the job has ended."""
        if not self.requested.done():
            self.writer.write(f"{outcome.text}\n".encode())


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
        self._context = context
        self._listener = listening("", ports, backlog=MAX_UNAUTHENTICATED)
        self._listener.setblocking(False)
        self.invitation = Invitation(
            list(listens_at) or addresses(),
            self._listener.getsockname()[1],
            fingerprint,
            secrets.token_urlsafe(32),
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
        self._refusals: dict[str, str] = {}
        """The latest refusal of each host, by the name that it has given."""
        self._unauthenticated: dict[asyncio.Task[None], None] = {}
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
        """Who was refused, and why; at most `MAX_REFUSALS`."""
        return tuple(self._refusals.values())

    def address(self, host: str) -> str | None:  # noqa: D102
        return self._addresses.get(host)

    def explain(self, host: str, last_lines: Sequence[str]) -> str | None:  # noqa: D102
        return self._refusals.get(host)

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
        accepting = asyncio.create_task(self._accept())
        await self._closed.wait()
        accepting.cancel()
        self._listener.close()
        for agent in [*self._agents.values()]:
            agent.writer.close()
        for agent in [*self._agents.values()]:
            with contextlib.suppress(OSError, TimeoutError):
                await asyncio.wait_for(agent.writer.wait_closed(), 1.0)

    async def _accept(self) -> None:
        while True:
            connection, peer = await self._loop.sock_accept(self._listener)
            while len(self._unauthenticated) >= MAX_UNAUTHENTICATED:
                oldest = next(iter(self._unauthenticated))
                del self._unauthenticated[oldest]
                oldest.cancel()
            task = self._loop.create_task(self._receive(connection, peer[0]))
            self._unauthenticated[task] = None
            task.add_done_callback(lambda done: self._unauthenticated.pop(done, None))
            await asyncio.sleep(0)  # it begins, and closes the connection if it is cancelled

    async def _receive(self, connection: socket.socket, peer: str) -> None:
        """Hear who has come."""
        writer = None
        try:
            async with asyncio.timeout(GREETING_TIMEOUT):
                reader = asyncio.StreamReader(limit=MAX_LINE)
                transport, base = await self._loop.connect_accepted_socket(
                    lambda: asyncio.StreamReaderProtocol(reader), connection, ssl=self._context
                )
                end_with_peer(connection, PEER_TIMEOUT)
                writer = asyncio.StreamWriter(transport, base, reader, self._loop)
                greeting = Greeting.parse(await reader.readuntil(b"\n"))
        except (OSError, ValueError, EOFError, asyncio.LimitOverrunError, TimeoutError) as error:
            self._note(peer, f"a connection from {peer} is no agent's: {_reason(error)}")
            _abort(writer)
            return
        except asyncio.CancelledError:
            _abort(writer)
            raise
        self._admit(
            greeting, _AgentConnection(reader, writer, greeting.instance, self._loop.create_future()), peer
        )

    def _admit(self, greeting: Greeting, agent: _AgentConnection, peer: str) -> None:
        host, present = greeting.host, self._agents.get(greeting.host)
        is_trusted = hmac.compare_digest(greeting.token.encode(), self.invitation.token.encode())
        refused = "its token is not this job's: start it with the job's invitation"
        if is_trusted:
            there = self._own if host == self._own else None if present is None else present.instance
            refused = refusal_of(greeting, there)
        agent.writer.write(f"{Answer(refused).text}\n".encode())
        if refused:
            agent.writer.close()
            self._note(host, f"the agent of {host[:SHOWN]!r} ({peer}) is refused: {refused}")
            if is_trusted and present is None and (wanted := self._requested.get(host)) is not None:
                self._fail(wanted, refused)
            return
        self._refusals.pop(host, None)
        self._left.pop(host, None)
        if present is not None:  # its other end knows already that this connection is broken
            present.writer.transport.abort()
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
        said = self._loop.create_task(_read(agent.reader))
        waits: list[asyncio.Future[Any]] = [said, agent.requested]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        try:
            if said.done():  # it has left, or speaks before it is asked
                return
            said.cancel()
            await self._connect(agent, agent.requested.result())
        finally:
            agent.writer.close()
            if self._agents.get(host) is agent:
                del self._agents[host]
                if agent.requested.done():  # one that was not wanted does not come again
                    self._left[host] = self._loop.time()

    async def _connect(self, agent: _AgentConnection, wanted: _HostConnection) -> None:
        (reports, its_reports), (orders, its_orders) = socket.socketpair(), socket.socketpair()
        _, to_launcher = await asyncio.open_connection(sock=reports)
        from_launcher, closing = await asyncio.open_connection(sock=orders)
        wanted.pair.set_result((its_reports, its_orders))
        ordering = self._loop.create_task(_pass_orders(from_launcher, agent.writer))
        try:
            while data := await _read(agent.reader):
                to_launcher.write(data)
                await to_launcher.drain()
        except OSError:  # the launcher hears no more
            pass
        finally:
            ordering.cancel()
            to_launcher.close()
            closing.close()

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
            agent.writer.transport.abort()
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

    def _note(self, name: str, text: str) -> None:
        if name not in self._refusals and len(self._refusals) >= MAX_REFUSALS:
            return
        if self._refusals.get(name) != text:
            self._refusals[name] = text
            log.warning("%s", text)


async def _read(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read(CHUNK)
    except OSError:  # a broken connection has no more to say
        return b""


async def _pass_orders(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await _read(reader):
            writer.write(data)
            await writer.drain()
        writer.write(protocol.write(protocol.Close()))


def _abort(writer: asyncio.StreamWriter | None) -> None:
    if writer is not None:
        writer.transport.abort()


def _reason(error: Exception) -> str:
    match error:
        case TimeoutError():
            return f"it has said nothing for {GREETING_TIMEOUT:g} s"
        case asyncio.LimitOverrunError():
            return f"its first line has more than {MAX_LINE} bytes"
        case asyncio.IncompleteReadError():
            return "it was closed without a word"
    return str(error)
