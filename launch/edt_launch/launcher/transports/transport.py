"""The interface of a transport: the way to the agents of some hosts.

`Agents` opens a connection to each host on which a job has workers, and speaks `agent.protocol` over it.
"""

import asyncio
import contextlib
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from edt_launch.cluster.hosts import HostSource
from edt_launch.core.command_line import NoOptions
from edt_launch.core.run_options import RunOptions

AGENT = (sys.executable, "-P", "-m", "edt_launch.agent")
"""The command that is an agent. The job's variables and tokens travel over its standard streams."""


@dataclass(frozen=True)
class Streams:
    """The two streams of a connection, and what else comes from its other end.

    Attributes:
        reports: what the agent sends.
        orders: what it is sent. Closing it tells the agent to end.
        said: lines that the agent, or what leads to it, says about itself; None if none can come.
    """

    reports: asyncio.StreamReader
    orders: asyncio.WriteTransport
    said: asyncio.StreamReader | None = None


@contextlib.asynccontextmanager
async def opened(reports: Any, orders: Any, said: Any = None) -> AsyncIterator[Streams]:
    """The streams over pipes or sockets, each for one direction; closed at the end."""
    loop = asyncio.get_running_loop()
    readers = []
    with contextlib.ExitStack() as pipes:
        for pipe in filter(None, (reports, said)):
            readers.append(asyncio.StreamReader())
            feed = partial(asyncio.StreamReaderProtocol, readers[-1])
            transport, _ = await loop.connect_read_pipe(feed, pipe)
            pipes.callback(transport.close)
        writing, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, orders)
        pipes.callback(writing.close)
        yield Streams(readers[0], writing, readers[1] if said is not None else None)


class Connection(ABC):
    """The way to the agent of one host, from `Transport.open` to the agent's end."""

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes on this machine that are the agent, or lead to it."""
        return ()

    @abstractmethod
    def streams(self) -> contextlib.AbstractAsyncContextManager[Streams]:
        """The streams, as soon as there are any; closed at the end. Called once, in the thread of `Agents`.

        Raises:
            StartError: there will be none.
        """

    @abstractmethod
    async def ended(self, timeout: float) -> int:
        """The agent's exit code, negative for a signal, `HOST_LOST` if unknown.

        What has not ended after `timeout` seconds is killed.
        """

    def withdraw(self) -> None:  # noqa: B027 - who is connected at once has nothing to do
        """The agent is not needed any more, if it has not come yet. In the thread of `Agents`."""

    @abstractmethod
    def kill(self) -> None:
        """Cut the connection, and end what is here, without waiting. In any thread, at any time."""


class Transport(ABC):
    """A way to the agents of some hosts. It lives as long as the job.

    Attributes:
        name: by which hosts name it, and what messages call it.
        options: a dataclass of those that it has, declared as in `core.run_options`; jobs of the service have
            them from its settings.
        by_name_only: whether hosts have to name it; else it is for those that name none, too.
        runs_commands: whether it starts agents by a command, which can be another one for each host.
        is_remote: whether its hosts may be out of reach while this machine is not: their agents have a lease.
    """

    name: ClassVar[str]
    options: ClassVar[type] = NoOptions
    by_name_only: ClassVar[bool] = False
    runs_commands: ClassVar[bool] = False
    is_remote: ClassVar[bool] = True

    @classmethod
    @abstractmethod
    def detect(cls, options: RunOptions, environment: Mapping[str, str]) -> Self | None:
        """The transport, if it can be used with these options and in this environment; else None."""

    @classmethod
    def offered_by(cls, source: HostSource, options: RunOptions) -> Self | None:
        """The transport over the connection that a source has to its hosts, if it is of this kind."""
        return None

    @abstractmethod
    def open(self, host: str, marks: Mapping[str, str], agent: Sequence[str] = AGENT) -> Connection:
        """Have an agent on a host, and connect to it, without waiting. Called in any thread.

        Args:
            host: as its source of hosts calls it.
            marks: variables by which an agent on this machine is found again.
            agent: the command that is the agent, for a transport that `runs_commands`.

        Raises:
            StartError: it cannot be started.
        """

    def problem(self, host: str) -> str | None:
        """Why a host cannot be reached by this transport, in words; None if it may be."""
        return None

    def address(self, host: str) -> str | None:
        """The IPv4 address of a host, if the transport knows it; else its name is looked up."""
        return None

    def knows(self, host: str) -> bool:
        """Whether a host that names no transport is reached by this one."""
        return self.address(host) is not None

    def explain(self, host: str, last_lines: Sequence[str]) -> str | None:
        """What to do about a connection that has failed; None if its last lines say it themselves."""
        return None

    def describe(self, host: str) -> str:
        """What messages call the connection to a host."""
        return f"{self.name} to {host}"

    def close(self) -> None:  # noqa: B027 - most keep nothing
        """The job has ended, and all connections with it."""
