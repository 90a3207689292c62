"""Transports that are a command: its standard streams are the agent's."""

import asyncio
import contextlib
import signal
import subprocess
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from edt_launch.agent.system.processes import REAP_TIMEOUT
from edt_launch.core.errors import StartError
from edt_launch.core.system.environments import own
from edt_launch.launcher.transports.transport import AGENT, Connection, Streams, Transport, opened

__all__ = ["AGENT", "CommandConnection", "CommandTransport"]


class CommandConnection(Connection):
    """A process, and the pipes to and from it.

    Raises:
        StartError: it cannot be executed.
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str]) -> None:
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            raise StartError(f"cannot run {words[0]}: {error.strerror}") from None

    @property
    def pids(self) -> tuple[int, ...]:  # noqa: D102
        return (self._process.pid,)

    def streams(self) -> contextlib.AbstractAsyncContextManager[Streams]:  # noqa: D102
        return opened(self._process.stdout, self._process.stdin, self._process.stderr)

    async def ended(self, timeout: float) -> int:
        """The exit code of the process, -9 for one that the kernel does not let go of."""
        deadline = time.monotonic() + timeout
        while (exit_code := self._process.poll()) is None and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        if exit_code is not None:
            return exit_code
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(REAP_TIMEOUT)
        return -signal.SIGKILL

    def kill(self) -> None:  # noqa: D102
        self._process.kill()


class CommandTransport(Transport):
    """Agents are started by a command that is connected to their standard streams."""

    runs_commands: ClassVar[bool] = True

    @abstractmethod
    def command(self, host: str, agent: Sequence[str] = AGENT) -> list[str]:
        """The command that runs `agent` on a host, connected to the command's own standard streams.

        It ends when the agent ends, and ends the agent, or its input, when it is killed.
        """

    def open(  # noqa: D102
        self, host: str, marks: Mapping[str, str], agent: Sequence[str] = AGENT
    ) -> Connection:
        return CommandConnection(self.command(host, agent), own())
