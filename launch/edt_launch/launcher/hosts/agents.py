"""The agents of a job, one a host, and the connections to them, served by one thread.

How a host's agent is reached is its transport's business. Workers are asked for only after an agent has said
hello, so that one that was never heard of has started none.
"""

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from edt_launch.agent import protocol
from edt_launch.agent.conversation import Conversation
from edt_launch.agent.ports import PORT_VARIABLE
from edt_launch.agent.system.processes import JOB_VARIABLE
from edt_launch.core.errors import HOST_LOST, StartError
from edt_launch.core.files.lines import LineSplitter
from edt_launch.launcher.hosts.host_files import HostFiles
from edt_launch.launcher.hosts.transfers import TransferError, Transfers
from edt_launch.launcher.transports.choice import Transports
from edt_launch.launcher.transports.transport import Connection, Transport
from edt_messages.messages import Checkpointed
from edt_messages.runs import RUN

FileReport = protocol.Want | protocol.Stored | protocol.Fetched | protocol.Listed

CHUNK = 2**16

LAST_WORDS = 20
"""Lines of an agent, or of ssh, that are kept to explain its end."""

LAST_WORDS_GRACE = 1.0
"""Seconds after its end in which those may come, as somebody else may have its standard error open."""

ANSWER_TIMEOUT = 300.0
"""Seconds that an agent has to say hello, or to start a worker; it waits for a warm server no longer than
`agent.workers.REQUEST_TIMEOUT`. One that takes longer is killed."""

END_TIMEOUT = 10.0
"""Seconds that an agent has to end once it has closed its output."""

SILENCE_LIMIT = 3 * protocol.HEARTBEAT_INTERVAL
"""Seconds without a byte from the agent of another host after which that host counts as lost."""

MARKS = (JOB_VARIABLE, RUN, "HOROVOD_HOSTNAME")
"""Variables by which an agent on this host is found again; it has no others of its workers'."""

_OURS = "edt-launch: "
"""How explanations begin that are not what an agent or ssh has said."""

TICK = 0.5
"""Seconds between two looks whether an agent is late. A longer one, as when this process was stopped together
with its agents, counts for as much."""


@dataclass(frozen=True)
class AgentOutput:
    """An agent, or the command that leads to it, has said something about itself."""

    text: str


@dataclass(frozen=True)
class Lost:
    """An agent has ended, or the way to it, by a signal if the exit code is negative.

    `explanation` is what to tell about its workers, line by line. `has_connected`: it had said hello before.
    `gone_after`: seconds from now after which its workers are gone in any case; None if nobody can tell.
    """

    exit_code: int
    explanation: tuple[str, ...] = ()
    has_connected: bool = True
    gone_after: float | None = None

    @property
    def reason(self) -> str:
        """What has come first, in words."""
        ours = (text.removeprefix(_OURS) for text in self.explanation if text.startswith(_OURS))
        return next(ours, "")


@dataclass(frozen=True)
class CheckpointFetched:
    """A worker's checkpoint is in `path`; that is None if `error` says why not, or if a newer one comes."""

    worker: int
    checkpointed: Checkpointed
    path: Path | None = None
    error: str | None = None


@dataclass(frozen=True)
class CheckpointPut:
    """A worker has the newest checkpoint, if there is one; or `error` says why not."""

    worker: int
    error: str | None = None


@dataclass(frozen=True)
class AllEnded:
    """The last agent has ended, after `Agents.close`; or there was a mistake of ours."""

    error: BaseException | None = None


@dataclass(frozen=True)
class HostEvent:
    """Something has happened on a host, whose name is empty for `AllEnded`."""

    host: str
    happening: protocol.Report | AgentOutput | Lost | CheckpointFetched | CheckpointPut | AllEnded


class Agents:
    """Starts agents, sends orders to them and hears their reports.

    What differs from host to host is filled in in `setup`. `transports` lead to the hosts.
    `notify` is told of everything that happens, in the thread of the agents. An agent that does not answer
    for `timeout` seconds is killed. One on another host has a lease, and is given up after `SILENCE_LIMIT`.
    A host that does not see the output directory gets `files`; None if all do.
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
        self._links: dict[str, _Link] = {}
        self._known: set[str] = set()
        """Hosts that have had an agent."""
        self._lock = threading.Lock()
        """The loop runs as long as there is a link, or none has asked for the end."""
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
            return [pid for link in self._links.values() for pid in link.connection.pids]

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
            if host in self._links:
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
            self._links[host] = link = _Link(transport, self._transports.open(host, marks))
            self._loop.call_soon_threadsafe(lambda: self._group.create_task(self._serve(host, link, setup)))

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
            link, meeting = self._links.get(host), self._links.get(meets_at)
            if link is not None and meeting is not None:
                self._loop.call_soon_threadsafe(meeting.with_port, link, order)

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
            if self._links:
                self._loop.call_soon_threadsafe(self._begin_probe, number, dict(addresses))

    def has_own_disk(self, host: str) -> bool:
        """Whether a host has said that it does not see the output directory."""
        link = self._links.get(host)
        return link is not None and link.transfers.folder is not None

    def fetch_checkpoint(self, host: str, worker: int, checkpointed: Checkpointed) -> None:
        """Fetch a checkpoint that a worker has written; `CheckpointFetched` follows."""
        self._transfer(host, worker, partial(self._fetch, checkpointed=checkpointed))

    def put_checkpoint(self, host: str, worker: int, folder: str) -> None:
        """Have the newest checkpoint in a folder of the host; `CheckpointPut` follows."""
        self._transfer(host, worker, partial(self._put, folder=folder))

    def finish(self, first: str | None) -> None:
        """Fetch what workers have written on hosts that do not see the output directory; then close.

        Of files with the same name that of the host `first` counts.
        """
        with self._lock:
            if not self._is_closing and not self.is_collecting:
                self.is_collecting = True
                self._loop.call_soon_threadsafe(lambda: self._group.create_task(self._collect(first)))

    def close(self) -> None:
        """Have every agent end everything that its workers have left, and itself."""
        with self._lock:
            if not self._is_closing:
                self._is_closing = True
                self._loop.call_soon_threadsafe(self._hang_up)

    def abandon(self) -> None:
        """Kill all agents; the kernel kills what they have started here."""
        with self._lock:
            for link in self._links.values():
                link.connection.kill()

    def join(self) -> None:
        """Wait for the last agent's end, after `close`. Nothing else may be called then."""
        self._thread.join()

    def _send(self, host: str, order: protocol.Order) -> None:
        with self._lock:
            if (link := self._links.get(host)) is not None:
                self._loop.call_soon_threadsafe(link.put, order)

    def _transfer(
        self, host: str, worker: int, run: Callable[[str, "_Link", int], Coroutine[None, None, None]]
    ) -> None:
        with self._lock:
            if (link := self._links.get(host)) is not None:
                self._loop.call_soon_threadsafe(lambda: self._group.create_task(run(host, link, worker)))

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
            with self._lock:  # there are links only after a mistake of ours
                self._is_closing = True
                for link in self._links.values():
                    link.connection.kill()
                    await link.connection.ended(0.0)
                self._links.clear()

    def _hang_up(self) -> None:
        self._closed.set()
        for link in self._links.values():
            link.hang_up()

    def _begin_probe(self, number: int, addresses: dict[str, str]) -> None:
        self._probe = number, {host: address for host, address in addresses.items() if host in self._links}
        for host in self._probe[1]:
            if self._links[host].listening_at is None:
                self._links[host].put(protocol.Listen())
        self._send_probe()

    def _send_probe(self) -> None:
        """Send the probe that is to be made, if all its agents listen."""
        number, addresses = self._probe
        links = {host: self._links[host] for host in addresses if host in self._links}
        if len(links) < len(addresses) or any(link.listening_at is None for link in links.values()):
            return
        self._probe = number, {}
        at = {host: f"{address}:{links[host].listening_at}" for host, address in addresses.items()}
        for host, link in links.items():
            link.put(protocol.Probe(number, {other: at[other] for other in at if other != host}))

    async def _serve(self, host: str, link: "_Link", setup: protocol.Setup) -> None:
        watching = self._group.create_task(self._watch(host, link))
        try:
            async with link.connection.streams() as streams:
                link.orders = streams.orders
                link.write(setup)
                if self._is_closing:
                    link.hang_up()
                listening = self._group.create_task(self._listen(host, link, streams.said))
                await self._hear(host, link, streams.reports)
                watching.cancel()
                exit_code = await link.connection.ended(END_TIMEOUT)
                await asyncio.wait([listening], timeout=LAST_WORDS_GRACE)
                listening.cancel()
        except StartError as error:
            watching.cancel()
            exit_code = HOST_LOST
            self._keep(host, link, str(error))
        link.transfers.close(f"{host} is lost")
        with self._lock:
            del self._links[host]
        if link.left is not None:
            exit_code = link.left.exit_code
        if exit_code or not self._is_closing:
            self._notify(HostEvent(host, self._lost(host, link, exit_code)))

    async def _hear(self, host: str, link: "_Link", reports: asyncio.StreamReader) -> None:
        reader: protocol.Reader[protocol.Report] = protocol.Reader(protocol.Report)
        while data := await reports.read(CHUNK):
            link.silence = 0.0
            try:
                for report in reader.feed(data):
                    link.conversation.report(report)
                    self._take(host, link, report)
            except protocol.ProtocolError as error:
                reason = f"the agent of {host} has sent {error}: {host} counts as lost"
                if not link.has_connected and not data.startswith(b"{"):
                    reason = _printed_by_shell(host, data)
                self._refuse(host, link, reason)
                return

    async def _send_code(self, host: str, link: "_Link", hello: protocol.Hello) -> None:
        """Send the program's files to a host that does not see them; then its workers may start."""
        assert self._files is not None
        try:
            await self._files.send_code(link.transfers)
        except TransferError as error:
            self._refuse(host, link, f"{host} cannot get the program's files: {error}")
        else:
            link.greet()
            self._notify(HostEvent(host, hello))

    async def _fetch(self, host: str, link: "_Link", worker: int, checkpointed: Checkpointed) -> None:
        assert self._files is not None
        path = error = None
        try:
            path = await self._files.fetch_checkpoint(link.transfers, checkpointed.path)
        except TransferError as caught:
            error = f"it cannot be fetched from {host}: {caught}"
        self._notify(HostEvent(host, CheckpointFetched(worker, checkpointed, path, error)))

    async def _put(self, host: str, link: "_Link", worker: int, folder: str) -> None:
        assert self._files is not None
        error = None
        try:
            await self._files.put_checkpoint(link.transfers, folder)
        except TransferError as caught:
            error = f"the checkpoint cannot be brought to {host}: {caught}"
        self._notify(HostEvent(host, CheckpointPut(worker, error)))

    async def _collect(self, first: str | None) -> None:
        fetched: set[str] = set()
        for host, link in sorted(self._links.items(), key=lambda item: item[0] != first):
            if self._files is not None and link.transfers.folder is not None:
                try:
                    await self._files.fetch_results(link.transfers, fetched)
                except TransferError as error:
                    text = f"not all that workers have written there can be fetched: {error}"
                    self._notify(HostEvent(host, AgentOutput(text)))
        self.is_collecting = False
        self.close()

    async def _watch(self, host: str, link: "_Link") -> None:
        """Give up an agent that does not answer: it is stopped, or its host is, or the way to it is cut."""
        tick = min(TICK, self._timeout)
        while True:
            await asyncio.sleep(tick)
            if (late := link.later(tick, self._timeout)) is not None:
                self._refuse(host, link, f"the agent has not {late} for {self._timeout:g} s, and is killed")
                return
            if link.transport.is_remote and link.silence > SILENCE_LIMIT:
                silent = f"nothing has come from {host} for {SILENCE_LIMIT:g} s"
                self._refuse(host, link, f"{silent}: the host or the way to it is down")
                return

    async def _listen(self, host: str, link: "_Link", said: asyncio.StreamReader | None) -> None:
        lines = LineSplitter(longest=CHUNK)
        while data := await said.read(CHUNK) if said is not None else b"":
            self._keep(host, link, *map(_text, lines.feed(data)))
        if lines.pending:
            self._keep(host, link, *map(_text, lines.feed(b"\n")))

    def _keep(self, host: str, link: "_Link", *lines: str) -> None:
        for line in lines:
            link.last_words.append(line)
            self._notify(HostEvent(host, AgentOutput(line)))

    def _take(self, host: str, link: "_Link", report: protocol.Report) -> None:
        if isinstance(report, protocol.Hello):
            if report.version != protocol.VERSION:
                versions = f"version {report.version} of the agent's messages, this one {protocol.VERSION}"
                reason = f"edt_launch on {host} has {versions}: install the same on all hosts"
                self._refuse(host, link, reason)
                return
            if report.folder is None:
                link.greet()
            else:
                link.transfers.folder = report.folder
                self._group.create_task(self._send_code(host, link, report))
                return
        elif isinstance(report, FileReport):
            link.move_file(report)
            return
        elif isinstance(report, protocol.Heartbeat):
            link.write(protocol.Renew(report.sent_at))
            return
        elif isinstance(report, protocol.Reserved):
            link.reserved(report.port)
        elif isinstance(report, protocol.Listening):
            link.listening_at = report.port
            self._send_probe()
            return
        elif isinstance(report, protocol.Started | protocol.Exited):
            link.unanswered.pop(report.worker, None)
        elif isinstance(report, protocol.Left):
            link.left = report
            self._keep(host, link, *report.last_words)
            return
        self._notify(HostEvent(host, report))

    def _refuse(self, host: str, link: "_Link", reason: str) -> None:
        link.last_words.append(f"{_OURS}{reason}")
        self._notify(HostEvent(host, AgentOutput(reason)))
        link.connection.kill()

    def _lost(self, host: str, link: "_Link", exit_code: int) -> Lost:
        hint = link.transport.explain(host, [*link.last_words])
        what = link.transport.describe(host)
        how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
        explanation = (*link.last_words, f"{_OURS}{hint or f'{what} {how}'}")
        gone_after = 2 * protocol.LEASE if link.transport.is_remote else None
        return Lost(exit_code, explanation, link.has_connected, gone_after)


def _printed_by_shell(host: str, data: bytes) -> str:
    """What to do about a host that prints before its agent runs."""
    return (
        f"{host} has printed {data[:80].decode(errors='replace').strip()!r} before its agent said hello: "
        "have the start-up files of its shell print nothing for commands without a terminal"
    )


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r")


class _Link:
    """An agent, from when it was asked for, and the connection to it."""

    def __init__(self, transport: Transport, connection: Connection) -> None:
        self.transport = transport
        self.connection = connection
        self.orders: asyncio.WriteTransport | None = None
        """None until the agent is connected."""
        self.conversation = Conversation()
        self.left: protocol.Left | None = None
        """How the agent has ended, if what connects it has said so."""
        self.last_words: deque[str] = deque(maxlen=LAST_WORDS)
        self.has_connected = False
        self._waiting: list[protocol.Order] = []
        """What is to be sent after the hello."""
        self.unanswered: dict[int, float] = {}
        """Workers that are to be started, and for how many seconds."""
        self.silence = 0.0
        """Seconds since anything has come from the agent, once it has said hello."""
        self.listening_at: int | None = None
        """The port at which it accepts connections of other agents; None if it does not yet."""
        self.transfers = Transfers(self.write)
        self._waited = 0.0
        """Seconds without a hello, or without the port that it is to reserve."""
        self._port: int | None = None
        self._meeting: list[tuple[_Link, protocol.Start]] = []
        """Workers that are to be started when the port is known, and where."""

    def put(self, order: protocol.Order) -> None:
        """Send an order as soon as may be."""
        if self.has_connected:
            self.write(order)
        else:
            self._waiting.append(order)

    def greet(self) -> None:
        """The agent has said hello."""
        self.has_connected = True
        while self._waiting:
            self.write(self._waiting.pop(0))

    def move_file(self, report: FileReport) -> None:
        """The agent has said something about a file; it is not late then."""
        self._waited = 0.0
        self.transfers.take(report)

    def with_port(self, link: "_Link", order: protocol.Start) -> None:
        """Start a worker over a link, with the port that this agent has reserved."""
        if not self._meeting and self._port is None:
            self.put(protocol.Reserve())
        self._meeting.append((link, order))
        if self._port is not None:
            self.reserved(self._port)

    def reserved(self, port: int) -> None:
        """The agent has reserved a port."""
        self._port = port
        while self._meeting:
            link, order = self._meeting.pop(0)
            link.put(replace(order, environment={**order.environment, PORT_VARIABLE: str(port)}))

    def write(self, order: protocol.Order) -> None:
        """Send an order now, if there is somebody to read it."""
        self.conversation.order(order)
        if isinstance(order, protocol.Start):
            self.unanswered[order.worker] = 0.0
        if self.orders is not None and not self.orders.is_closing():
            self.orders.write(protocol.write(order))

    def later(self, seconds: float, limit: float) -> str | None:
        """So many seconds have passed; what the agent should have done by now, if its time is over."""
        self.silence = self.silence + seconds if self.has_connected else 0.0
        self._waited = self._waited + seconds if self._meeting or not self.has_connected else 0.0
        if self._waited > limit:
            return "reserved a port" if self.has_connected else "said hello"
        for worker in self.unanswered:
            self.unanswered[worker] += seconds
        late = [worker for worker, waited in self.unanswered.items() if waited > limit]
        return f"started worker {late[0]}" if late else None

    def hang_up(self) -> None:
        """Send no more than what has been written."""
        if self.orders is not None:
            self.orders.close()
        else:
            self.connection.withdraw()
