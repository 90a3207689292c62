"""Requests of the service to launchers. Nothing here waits: a later look finds the answer, or does not."""

import contextlib
import socket
import time
from collections.abc import Callable
from enum import Enum
from pathlib import Path

from edt_launch.core.control_protocol import MAX_LINE, Accepted, Refused, Request, read_reply, write
from edt_launch.core.system.unix_address import unix_address

TIMEOUT = 2.0
"""Seconds in which a launcher is to answer."""


class ControlAnswer(Enum):
    """What became of a request."""

    ACCEPTED = "the request was accepted"
    REFUSED = "the request was refused"
    NO_LAUNCHER = "no launcher listens"
    NO_ANSWER = "the launcher does not answer"


class Exchange:
    """A request to the launcher that listens at `path`; `answer` is None until it is known."""

    def __init__(self, path: Path, request: Request, clock: Callable[[], float] = time.monotonic) -> None:
        self.request = request
        self.answer: ControlAnswer | None = None
        self.reason = ""
        self._clock = clock
        self._until = clock() + TIMEOUT
        self._received = b""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            with unix_address(path) as address:
                self._socket.connect(address)
            self._socket.sendall(write(request))  # its buffer is empty, and far larger
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):  # more wait than it has room for
            self._end(ControlAnswer.NO_ANSWER)
        except OSError:
            self._end(ControlAnswer.NO_LAUNCHER)

    def look(self) -> ControlAnswer | None:
        """The answer, if it is there or will not come; None: not yet."""
        while self.answer is None:
            try:
                data = self._socket.recv(MAX_LINE)
            except BlockingIOError:
                if self._clock() >= self._until:
                    self._end(ControlAnswer.NO_ANSWER)
                break
            except OSError:
                data = b""
            self._take(data)
        return self.answer

    def close(self) -> None:
        """Wait for the answer no more."""
        self._socket.close()

    def _take(self, data: bytes) -> None:
        self._received += data
        line, newline, _ = self._received.partition(b"\n")
        if not newline:
            if not data or len(line) > MAX_LINE:
                self._end(ControlAnswer.NO_ANSWER)
            return
        match read_reply(line):
            case Accepted(id_) if id_ == self.request.id:
                self._end(ControlAnswer.ACCEPTED)
            case Refused(_, reason):
                self.reason = reason
                self._end(ControlAnswer.REFUSED)
            case _:
                self._end(ControlAnswer.NO_ANSWER)

    def _end(self, answer: ControlAnswer) -> None:
        self.answer = answer
        with contextlib.suppress(OSError):
            self.close()
