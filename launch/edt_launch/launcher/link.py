"""The process through which an agent is reached, and the streams to and from it."""

import contextlib
import os
import selectors
import socket
import subprocess
from collections import deque
from collections.abc import Mapping, Sequence

from edt_launch.agent.protocol import Order, Reader, Setup, write
from edt_launch.core.errors import StartError

CHUNK = 2**16

LAST_WORDS = 20
"""Lines of an agent, or of ssh, that are kept to explain its end."""


class Link:
    """The process through which an agent is reached, and its streams.

    Args:
        words: its command line.
        environment: its variables, if it is the agent itself; None for a connector's command.

    Raises:
        StartError: it cannot be executed.
    """

    def __init__(self, words: Sequence[str], environment: Mapping[str, str] | None) -> None:
        self.reader = Reader.of_reports()
        self.last_words: deque[str] = deque(maxlen=LAST_WORDS)
        self.has_connected = False
        self.is_closing = False
        self._waiting = bytearray()
        """What is to be sent after the hello."""
        self._unsent = bytearray()
        self._rest = b""
        self._socket: socket.socket | None = None
        theirs: socket.socket | None = None
        if environment is not None:
            self._socket, theirs = socket.socketpair()
        try:
            self.process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE if theirs is None else theirs.fileno(),
                stdout=subprocess.PIPE if theirs is None else theirs.fileno(),
                stderr=subprocess.PIPE,
                env=environment,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            if self._socket is not None:
                self._socket.close()
            raise StartError(f"cannot run {words[0]}: {error.strerror}") from None
        finally:
            if theirs is not None:
                theirs.close()
        assert self.process.stderr is not None
        self.errors = self.process.stderr.fileno()
        self._input, self._output = self._ends()
        self.is_read = True
        """Whether more may come from the agent."""
        self._open = {self._input, self._output, self.errors}
        for descriptor in self._open:
            os.set_blocking(descriptor, False)

    def _ends(self) -> tuple[int, int]:
        if self._socket is not None:
            return self._socket.fileno(), self._socket.fileno()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return self.process.stdin.fileno(), self.process.stdout.fileno()

    def put(self, order: Order) -> None:
        """Send an order as soon as may be."""
        line = write(order)
        if self.has_connected or isinstance(order, Setup):
            self._unsent += line
        else:
            self._waiting += line

    def greet(self) -> None:
        """The agent has said hello."""
        self.has_connected = True
        self._unsent += self._waiting
        self._waiting.clear()

    def flush(self) -> None:
        """Send what there is room for; once all is sent, nothing more if it is closing."""
        with contextlib.suppress(BlockingIOError):
            try:
                while self._unsent:
                    del self._unsent[: os.write(self._input, self._unsent[:CHUNK])]
            except OSError:  # it is gone, as the end of the other direction tells
                self._unsent.clear()
        if self.is_closing and not self._unsent:
            self._hang_up()

    def _hang_up(self) -> None:
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_WR)
        elif self.process.stdin is not None and not self.process.stdin.closed:
            self._open.discard(self._input)
            self.process.stdin.close()

    def words(self, data: bytes) -> list[str]:
        """The lines of standard error that `data` completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        self._rest = self._rest[:CHUNK]
        told = [line.decode(errors="replace").rstrip("\r") for line in lines]
        self.last_words.extend(told)
        return told

    def rest(self) -> list[str]:
        """What there is still to be read from standard error."""
        told: list[str] = []
        with contextlib.suppress(OSError):
            while data := os.read(self.errors, CHUNK):
                told += self.words(data)
        return told + (self.words(b"\n") if self._rest else [])

    def watch(self, selector: selectors.BaseSelector, host: str) -> None:
        """Have the selector wait for what is to be read, and for room for what is to be sent."""
        wanted = dict.fromkeys({self._output, self.errors} & self._open, selectors.EVENT_READ)
        self.flush()
        if self._unsent:
            wanted[self._input] = wanted.get(self._input, 0) | selectors.EVENT_WRITE
        known = selector.get_map()
        for descriptor in self._open:
            events, key = wanted.get(descriptor, 0), known.get(descriptor)
            if key is not None and events != key.events:
                selector.unregister(descriptor)
                key = None
            if key is None and events:
                selector.register(descriptor, events, (host, self))

    def unwatch(self, selector: selectors.BaseSelector, descriptor: int) -> None:
        """There is no more to be read from a descriptor."""
        self.is_read = self.is_read and descriptor != self._output
        if descriptor == self.errors:
            self._open.discard(descriptor)
        if descriptor in selector.get_map():
            selector.unregister(descriptor)

    def close(self, selector: selectors.BaseSelector) -> None:
        """Close everything."""
        for descriptor in self._open & set(selector.get_map()):
            selector.unregister(descriptor)
        self._open.clear()
        if self._socket is not None:
            self._socket.close()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None and not stream.closed:
                stream.close()
