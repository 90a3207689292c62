"""An agent's warm server: a process that has imported what the program needs, and forks the workers.

It is started with one end of a pair of sockets for its standard input, the *channel*; the end of the channel
tells either side that the other is gone. Once it has imported everything it says so over the channel, with
`Imported`. After that the agent sends it one end of a new pair of sockets for each worker. Everything else
goes over the pair of the worker:

========  =================================================================================================
agent     `Fork`
server    `Ready`
agent     one byte, with the descriptors of standard input, output, error and the lifeline
server    `Forked`, then `Exited` once the worker has ended
========  =================================================================================================

`edt_messages.forking` has the messages. The descriptors come second because a server that is stopped would
keep open what has been sent to it.

The *lifeline* is a pair of sockets of the agent and the worker. The worker begins when one byte comes through
it. From then on it has the kernel kill its process group when the agent's end closes, however the agent ends.
At its end it says with which code, for the case that the server, its parent, has gone or is stopped.
"""

import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace

from edt_launch.agent.warm.forkable import Program
from edt_launch.core.files.lines import LineSplitter
from edt_messages.codec import MessageError
from edt_messages.forking import MAX_LINE, Fork, Imported, Message, decode, encode

# The folder of the program comes to the front of the path in the worker, nothing in the server.
_SERVER = (
    "import sys, time; started = time.monotonic(); sys.path[:] = sys.path[not sys.flags.safe_path :]; "
    "from edt_hvd.warm.main import main; main(started, {options})"
)

CHUNK = 2**16


class WarmServer:
    """A warm server that has been started; it listens when it has imported everything.

    What it says goes to the descriptor `log`.

    Raises:
        OSError: it cannot be executed.
    """

    def __init__(
        self,
        program: Program,
        command: Sequence[str],
        environment: Mapping[str, str],
        directory: str | None,
        log: int,
    ) -> None:
        umask = os.umask(0o077)
        os.umask(umask)
        arguments, here = tuple(program.arguments), directory or os.getcwd()
        self._request = Fork(program.script, program.module, arguments, tuple(command), here, {}, umask)
        self.channel, theirs = socket.socketpair()
        with theirs:
            try:
                # SPT_NOENV: the workers show this environment, and they have to keep it when they change
                # their titles. The program's words make room for those.
                self.process = subprocess.Popen(
                    [*program.interpreter, "-c", _SERVER.format(options=len(program.interpreter)), *command],
                    stdin=theirs.fileno(),
                    stdout=log,
                    stderr=log,
                    cwd=directory,
                    env={**environment, "SPT_NOENV": "1"},
                    start_new_session=True,
                )
            except OSError:
                self.channel.close()
                raise
        self.is_ready = False
        self._lines = LineSplitter(longest=MAX_LINE)
        self.channel.setblocking(False)

    def hear(self) -> list[Imported] | None:
        """What it says of its imports, if it has just said that; None if it is gone."""
        messages = _received(self.channel, self._lines)
        if messages is None:
            return None
        imported = [message for message in messages if isinstance(message, Imported)]
        self.is_ready = self.is_ready or bool(imported)
        return imported

    def request(self, environment: Mapping[str, str], command: Sequence[str]) -> "Request":
        """Ask for a worker with these variables and this command: the server's, with other arguments.

        Raises:
            OSError: the server is gone, or does not take in anything.
        """
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                socket.send_fds(self.channel, [b"!"], [theirs.fileno()])
        except OSError:
            ours.close()
            raise
        arguments = tuple(command[len(self._request.command) - len(self._request.arguments) :])
        own = replace(self._request, environment=environment, command=tuple(command), arguments=arguments)
        return Request(ours, encode(own))


class Request:
    """A worker that the server has been asked for, over a socket of its own."""

    def __init__(self, connection: socket.socket, line: bytes) -> None:
        self.connection = connection
        self._unsent = memoryview(line)
        self._lines = LineSplitter(longest=MAX_LINE)
        connection.setblocking(False)

    def send(self) -> bool:
        """Send what the server has room for; whether there is something left to be sent."""
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):
            while self._unsent:
                self._unsent = self._unsent[self.connection.send(self._unsent) :]
        return bool(self._unsent)

    def give(self, descriptors: Sequence[int]) -> None:
        """Hand over the worker's standard streams and its lifeline."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            socket.send_fds(self.connection, [b"!"], list(descriptors))

    def answers(self) -> list[Message] | None:
        """What the server has answered since the last look; None at the end."""
        return _received(self.connection, self._lines)


def _received(connection: socket.socket, lines: LineSplitter) -> list[Message] | None:
    """The messages that have come; None at the end, which comes for what is no message, too."""
    try:
        data = connection.recv(CHUNK)
    except BlockingIOError:
        return []
    except ConnectionResetError:
        data = b""
    try:
        messages = [decode(line) for line in lines.feed(data)]
    except MessageError as error:
        print(f"edt agent: the warm server has sent {error}", file=sys.stderr, flush=True)
        return None
    return messages if data and not lines.skipped else None


def open_log(path: str | None) -> int:
    """A descriptor of a warm server's log, or of nothing where its folder is not."""
    if path is not None:
        with contextlib.suppress(OSError):  # another host, which does not see the folder
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    return os.open(os.devnull, os.O_WRONLY)
