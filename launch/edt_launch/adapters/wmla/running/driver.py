"""The driver: the process that runs a program's script from beginning to end.

It alone runs the script, and lives on, whatever becomes of the executors.
`edt_messages.wmla` has the messages between the driver and edt-launch.
"""

import contextlib
import os
import selectors
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from edt_launch.adapters.wmla.running.environment import LAUNCHER_VARIABLE
from edt_launch.agent.lifecycle import LEFTOVER_GRACE
from edt_launch.agent.system import processes
from edt_launch.agent.system.lifeline import kill_group_when_peer_closes
from edt_launch.agent.system.processes import JOB_VARIABLE
from edt_launch.agent.warm.server import CHUNK
from edt_launch.core.errors import StartError
from edt_launch.core.files.appender import Appender, Complain
from edt_launch.core.files.lines import LineSplitter
from edt_launch.core.history.exit_codes import signal_name
from edt_launch.launcher.runs.run import LeftBehind
from edt_launch.launcher.view.output import DRIVER, Line, LineReader
from edt_messages.codec import MessageError
from edt_messages.wmla import MAX_LINE, Cancel, Limit, Message, Train, decode, encode

Request = Train | Limit | Cancel


@dataclass(frozen=True)
class Invalid:
    """Something that is none of the driver's messages."""

    reason: str


class Requests:
    """The driver's messages, from whatever pieces of them have been read."""

    def __init__(self) -> None:
        self._lines = LineSplitter(longest=MAX_LINE)

    def feed(self, data: bytes) -> Iterator[Request | Invalid]:
        """The messages that `data` completes; a line that is too long is none."""
        yield from map(_request, self._lines.feed(data))
        if self._lines.skipped:
            yield Invalid(f"a line of more than {MAX_LINE:,} bytes")


def _request(line: bytes) -> Request | Invalid:
    try:
        message = decode(line)
    except MessageError as error:
        return Invalid(str(error))
    return message if isinstance(message, Request) else Invalid(f"{message} is none of a driver")


Happening = Line | Request | Invalid | LeftBehind


class DriverProcess:
    """Runs a script in a process group of its own. Leaving its context leaves no process of it.

    Args:
        words: the command.
        variables: its environment, but for its socket and the mark of its processes.
        directory: where it starts.
        printed: the files to which its standard output and error are appended, byte by byte.
        complain: told when they cannot be written.

    Raises:
        StartError: it cannot be executed.
    """

    def __init__(
        self,
        words: Sequence[str],
        variables: Mapping[str, str],
        directory: Path,
        printed: tuple[Path, Path],
        complain: Complain,
    ) -> None:
        self._name = uuid.uuid4().hex
        self._seen: set[psutil.Process] = set()
        self._requests = Requests()
        self._unsent = bytearray()
        self._open = contextlib.ExitStack()
        self._socket, theirs = map(self._open.enter_context, socket.socketpair())
        _lifeline, their_lifeline = map(self._open.enter_context, socket.socketpair())
        self._copies = tuple(Appender(path, complain) for path in printed)
        self._lines = tuple(LineReader(stream, DRIVER) for stream in ("stdout", "stderr"))
        self._selector = self._open.enter_context(selectors.DefaultSelector())
        self._is_swept = False
        with theirs, their_lifeline:
            self._process = self._start(words, variables, directory, theirs.fileno(), their_lifeline.fileno())
        for index, pipe in enumerate((self._process.stdout, self._process.stderr)):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ, index)
        self._selector.register(self._socket, selectors.EVENT_READ)

    def _start(
        self, words: Sequence[str], variables: Mapping[str, str], directory: Path, fd: int, lifeline: int
    ) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**variables, LAUNCHER_VARIABLE: str(fd), JOB_VARIABLE: self._name},
                cwd=directory,
                pass_fds=[fd, lifeline],
                start_new_session=True,
                preexec_fn=lambda: kill_group_when_peer_closes(lifeline),  # noqa: PLW1509 - this process has one thread
                bufsize=0,
            )
        except OSError as error:
            self._open.close()
            raise StartError(f"cannot run {words[0]}: {error.strerror}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if not self._is_swept:
                self.kill()
        finally:
            for copy in self._copies:
                copy.close()
            self._open.close()
            self._process.__exit__(kind, error, trace)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its exit code, negative for a signal; None while it, or what it has printed, is still there."""
        return self._process.returncode if self._is_swept else None

    def send(self, message: Message) -> None:
        """Send a message, once the driver has read those before; nobody waits for that."""
        self._unsent += encode(message)
        self._send_on()

    def _send_on(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: self._socket.send(self._unsent, socket.MSG_DONTWAIT)]
        except BlockingIOError:
            return
        except (BrokenPipeError, ConnectionResetError):  # it is ending
            self._unsent.clear()

    def terminate(self) -> None:
        """Tell it to end."""
        self._seen |= processes.tree(self.pid)
        self._process.terminate()

    def kill(self) -> int:
        """Kill it and all of its children; returns how many processes."""
        return processes.kill_job(self.pid, self._name, self._seen)

    def happenings(self, timeout: float) -> Iterator[Happening]:
        """What has happened since the last look; waits so many seconds for something to happen."""
        if self._is_swept:
            return
        self._send_on()
        yield from self._read(timeout)
        if self._process.poll() is None:
            return
        count = processes.sweep(self._name, self._seen, LEFTOVER_GRACE)
        while self._selector.get_map() and self._selector.select(0):
            yield from self._read(0)
        for lines in self._lines:
            yield from lines.close()
        self._is_swept = True
        if count:
            yield LeftBehind(count)

    def _read(self, timeout: float) -> Iterator[Happening]:
        if not self._selector.get_map():
            time.sleep(timeout)
            return
        for key, _ in self._selector.select(timeout):
            try:
                data = os.read(key.fd, CHUNK)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                data = b""
            if not data:
                self._selector.unregister(key.fileobj)
            elif key.data is None:
                yield from self._requests.feed(data)
            else:
                self._copies[key.data].write_bytes(data)
                self._copies[key.data].flush()
                yield from self._lines[key.data].feed(time.monotonic(), data)


def how(exit_code: int) -> str:
    """How a driver ended, in words."""
    if exit_code < 0:
        return f"was killed by {signal_name(exit_code) or f'signal {-exit_code}'}"
    return f"ended with exit code {exit_code}"
