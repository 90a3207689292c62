"""An agent's warm server: a process that has imported what the program needs, and forks the workers.

It is started with one end of a pair of sockets for its standard input, the *channel*; the end of the channel
tells either side that the other is gone. Once it has imported everything it says so in one line::

    seconds imports private refused

After that the agent sends it one end of a new pair of sockets for each worker. Everything else goes over the
pair of the worker, in JSON, one message a line after the request::

    request   4 bytes of length, then script module arguments command directory environment umask
    answer    ready; or refused, with the reason
    one byte  with the descriptors of standard input, output, error and the lifeline
    answer    pid, then status once it has ended (as of waitpid)

The descriptors come second because a server that is stopped would keep open what has been sent to it.

The *lifeline* is a pair of sockets of the agent and the worker. The worker begins when one byte comes through
it. From then on it has the kernel kill its process group when the agent's end closes, however the agent ends.
At its end it says with which code, for the case that the server, its parent, has gone or is stopped.
"""

import contextlib
import json
import os
import socket
import struct
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from edt_launch.agent.forkable import Program
from edt_launch.core.lines import LineSplitter

# The folder of the program comes to the front of the path in the worker, nothing in the server.
_SERVER = (
    "import sys, time; started = time.monotonic(); sys.path[:] = sys.path[not sys.flags.safe_path :]; "
    "from edt_hvd.warm.main import main; main(started, {options})"
)

CHUNK = 2**16

MAX_LINE = 2**20
"""Bytes of a message of the server at most."""


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
        self._request = {
            "script": program.script,
            "module": program.module,
            "arguments": program.arguments,
            "command": list(command),
            "directory": directory or os.getcwd(),
            "umask": umask,
        }
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

    def hear(self) -> dict[str, Any] | None:
        """What it says of its imports, if it has just said that; empty if nothing yet, None if it is gone."""
        messages = _received(self.channel, self._lines)
        if not messages:
            return None if messages is None else {}
        self.is_ready = True
        return messages[0]

    def request(self, environment: Mapping[str, str]) -> "Request":
        """Ask for a worker with these variables.

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
        body = json.dumps({**self._request, "environment": dict(environment)}).encode()
        return Request(ours, struct.pack("!I", len(body)) + body)


class Request:
    """A worker that the server has been asked for, over a socket of its own."""

    def __init__(self, connection: socket.socket, body: bytes) -> None:
        self.connection = connection
        self._unsent = memoryview(body)
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

    def answers(self) -> list[dict[str, Any]] | None:
        """What the server has answered since the last look; None at the end."""
        return _received(self.connection, self._lines)


def _received(connection: socket.socket, lines: LineSplitter) -> list[dict[str, Any]] | None:
    """The messages that have come; None at the end, which comes for those, too, that are too long."""
    try:
        data = connection.recv(CHUNK)
    except BlockingIOError:
        return []
    except ConnectionResetError:
        data = b""
    messages = [dict(json.loads(line)) for line in lines.feed(data)]
    return messages if data and not lines.skipped else None


def open_log(path: str | None) -> int:
    """A descriptor of a warm server's log, or of nothing where its folder is not."""
    if path is not None:
        with contextlib.suppress(OSError):  # another host, which does not see the folder
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    return os.open(os.devnull, os.O_WRONLY)
