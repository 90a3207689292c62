"""The agent of one host, from when it is asked for until it has ended."""

import asyncio
from collections import deque
from collections.abc import Callable

from edt_launch.agent import encoding, protocol
from edt_launch.core.errors import HOST_LOST, StartError
from edt_launch.core.files.lines import LineSplitter
from edt_launch.launcher.hosts.agent_link import AgentLink
from edt_launch.launcher.hosts.host_events import (
    OURS,
    AgentOutput,
    CheckpointFetched,
    CheckpointPut,
    HostEvent,
    Lost,
)
from edt_launch.launcher.hosts.host_files import HostFiles
from edt_launch.launcher.hosts.transfers import TransferError, Transfers
from edt_launch.launcher.transports.transport import Connection, Transport
from edt_messages.messages import Checkpointed

CHUNK = 2**16

LAST_WORDS = 20
"""Lines of an agent, or of ssh, that are kept to explain its end."""

LAST_WORDS_GRACE = 1.0
"""Seconds after its end in which those may come, as somebody else may have its standard error open."""

END_TIMEOUT = 10.0
"""Seconds that an agent has to end once it has closed its output."""

SILENCE_LIMIT = 3 * protocol.HEARTBEAT_INTERVAL
"""Seconds without a byte from the agent of another host after which that host counts as lost."""

TICK = 0.5
"""Seconds between two looks whether an agent is late. A longer one, as when this process was stopped together
with its agents, counts for as much."""


class HostAgent:
    """Speaks with the agent of a host. Everything but the attributes is for the thread that serves it.

    Args:
        host: its name.
        transport: leads to the host.
        connection: which it has opened.
        files: for a host that does not see the output directory; None if all do.
        notify: is told of what happens on the host.
        listening: called when the agent accepts connections of other agents.
        timeout: seconds after which an agent that does not answer is killed.

    Attributes:
        link: for orders.
        connection: to the agent.
        transfers: of files, if it has a folder of its own for them.
    """

    _group: asyncio.TaskGroup

    def __init__(
        self,
        host: str,
        transport: Transport,
        connection: Connection,
        files: HostFiles | None,
        notify: Callable[[HostEvent], None],
        listening: Callable[[], None],
        timeout: float,
    ) -> None:
        self.connection = connection
        self.link = AgentLink()
        self.transfers = Transfers(self.link.write)
        self._host = host
        self._transport = transport
        self._files = files
        self._notify = notify
        self._listening = listening
        self._timeout = timeout
        self._last_words: deque[str] = deque(maxlen=LAST_WORDS)
        self._left: protocol.Left | None = None
        """How the agent has ended, if what connects it has said so."""
        self._is_closing = False

    async def serve(self, group: asyncio.TaskGroup, setup: protocol.Setup) -> Lost | None:
        """Serve the agent until it has ended; how it was lost, None if it ended as it should."""
        self._group = group
        watching = group.create_task(self._watch())
        try:
            async with self.connection.streams() as streams:
                self.link.orders = streams.orders
                self.link.write(setup)
                if self._is_closing:
                    self.hang_up()
                reading = group.create_task(self._keep_all(streams.said))
                await self._hear(streams.reports)
                watching.cancel()
                exit_code = await self.connection.ended(END_TIMEOUT)
                await asyncio.wait([reading], timeout=LAST_WORDS_GRACE)
                reading.cancel()
        except StartError as error:
            watching.cancel()
            exit_code = HOST_LOST
            self._keep(str(error))
        self.transfers.close(f"{self._host} is lost")
        if self._left is not None:
            exit_code = self._left.exit_code
        return self._lost(exit_code) if exit_code or not self._is_closing else None

    def hang_up(self) -> None:
        """Send no more than what has been written: the agent ends."""
        self._is_closing = True
        if self.link.orders is None:
            self.connection.withdraw()
        elif self._transport.is_remote and not self.link.has_connected:
            self.connection.kill()  # it may be connecting for long, and has started nothing
        else:
            self.link.orders.close()

    async def fetch_checkpoint(self, worker: int, checkpointed: Checkpointed) -> None:
        """Fetch a checkpoint that a worker has written, and tell how that went."""
        assert self._files is not None
        path = error = None
        try:
            path = await self._files.fetch_checkpoint(self.transfers, checkpointed.path)
        except TransferError as caught:
            error = f"it cannot be fetched from {self._host}: {caught}"
        self._notify(HostEvent(self._host, CheckpointFetched(worker, checkpointed, path, error)))

    async def put_checkpoint(self, worker: int, folder: str) -> None:
        """Bring the newest checkpoint to a folder of the host, and tell how that went."""
        assert self._files is not None
        error = None
        try:
            await self._files.put_checkpoint(self.transfers, folder)
        except TransferError as caught:
            error = f"the checkpoint cannot be brought to {self._host}: {caught}"
        self._notify(HostEvent(self._host, CheckpointPut(worker, error)))

    async def fetch_results(self, fetched: set[str]) -> None:
        """Fetch what workers have written, if the host has a folder of its own; see `HostFiles`."""
        if self._files is None or self.transfers.folder is None:
            return
        try:
            await self._files.fetch_results(self.transfers, fetched)
        except TransferError as error:
            self._say(f"not all that workers have written there can be fetched: {error}")

    # What comes from the agent.

    async def _hear(self, reports: asyncio.StreamReader) -> None:
        reader: encoding.Reader[protocol.Report] = encoding.Reader(protocol.Report)
        while data := await reports.read(CHUNK):
            self.link.is_heard()
            try:
                for report in reader.feed(data):
                    self.link.check(report)
                    self._take(report)
            except protocol.ProtocolError as error:
                reason = f"the agent of {self._host} has sent {error}: {self._host} counts as lost"
                is_message = self.link.has_connected or data.startswith(b"{")
                self._refuse(reason if is_message else _printed_by_shell(self._host, data))
                return

    def _take(self, report: protocol.Report) -> None:
        match report:
            case protocol.Hello():
                self._take_hello(report)
            case protocol.Want() | protocol.Stored() | protocol.Fetched() | protocol.Listed():
                self.link.moves_files()
                self.transfers.take(report)
            case protocol.Heartbeat(sent_at):
                self.link.write(protocol.Renew(sent_at))
            case protocol.Listening():
                self._listening()
            case protocol.Left():
                self._left = report
                self._keep(*report.last_words)
            case _:
                self._notify(HostEvent(self._host, report))

    def _take_hello(self, hello: protocol.Hello) -> None:
        if hello.version != protocol.VERSION:
            versions = f"version {hello.version} of the agent's messages, this one {protocol.VERSION}"
            self._refuse(f"edt_launch on {self._host} has {versions}: install the same on all hosts")
        elif hello.folder is not None:
            self.transfers.folder = hello.folder
            self._group.create_task(self._send_code(hello))
        else:
            self._greet(hello)

    async def _send_code(self, hello: protocol.Hello) -> None:
        """Send the program's files to a host that does not see them; then its workers may start."""
        assert self._files is not None
        try:
            await self._files.send_code(self.transfers)
        except TransferError as error:
            self._refuse(f"{self._host} cannot get the program's files: {error}")
        else:
            self._greet(hello)

    def _greet(self, hello: protocol.Hello) -> None:
        self.link.greet()
        self._notify(HostEvent(self._host, hello))

    async def _keep_all(self, said: asyncio.StreamReader | None) -> None:
        lines = LineSplitter(longest=CHUNK)
        while data := await said.read(CHUNK) if said is not None else b"":
            self._keep(*map(_text, lines.feed(data)))
        if lines.pending:
            self._keep(*map(_text, lines.feed(b"\n")))

    # Ends.

    async def _watch(self) -> None:
        """Give up an agent that does not answer: it is stopped, or its host is, or the way to it is cut."""
        tick = min(TICK, self._timeout)
        while True:
            await asyncio.sleep(tick)
            if (overdue := self.link.overdue(tick, self._timeout)) is not None:
                self._refuse(f"the agent has not {overdue} for {self._timeout:g} s, and is killed")
                return
            if self._transport.is_remote and self.link.silence > SILENCE_LIMIT:
                silent = f"nothing has come from {self._host} for {SILENCE_LIMIT:g} s"
                self._refuse(f"{silent}: the host or the way to it is down")
                return

    def _refuse(self, reason: str) -> None:
        self._last_words.append(f"{OURS}{reason}")
        self._say(reason)
        self.connection.kill()

    def _keep(self, *lines: str) -> None:
        for line in lines:
            self._last_words.append(line)
            self._say(line)

    def _say(self, text: str) -> None:
        self._notify(HostEvent(self._host, AgentOutput(text)))

    def _lost(self, exit_code: int) -> Lost:
        hint = self._transport.explain(self._host, [*self._last_words])
        what = self._transport.describe(self._host)
        how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
        explanation = (*self._last_words, f"{OURS}{hint or f'{what} {how}'}")
        gone_after = 2 * protocol.LEASE if self._transport.is_remote else None
        return Lost(exit_code, explanation, self.link.has_connected, gone_after)


def _printed_by_shell(host: str, data: bytes) -> str:
    """What to do about a host that prints before its agent runs."""
    return (
        f"{host} has printed {data[:80].decode(errors='replace').strip()!r} before its agent said hello: "
        "have the start-up files of its shell print nothing for commands without a terminal"
    )


def _text(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\r")
