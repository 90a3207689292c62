"""One worker as an agent has it: its pipes, its lifeline, and what it was asked to run."""

import contextlib
import os
import re
import socket
import subprocess
from collections.abc import Mapping, Sequence

from edt_launch.agent.protocol import STREAMS
from edt_launch.agent.system.lifeline import kill_group_when_peer_closes
from edt_launch.agent.warm.server import Request

MAX_EXIT_CODE = 255

_EXIT_CODE = re.compile(rb"(?:^|\s)([0-9]{1,3})\s*$")


class Worker:
    """The open ends of a worker, and its variables."""

    def __init__(self, environment: Mapping[str, str], command: Sequence[str]) -> None:
        self.environment = environment
        self.command = command
        self.request: Request | None = None
        self.attempts = 0
        """Warm servers that have been asked for it."""
        self.lifeline, self._its_lifeline = socket.socketpair()
        pipes = [os.pipe() for _ in STREAMS]
        self.reading = {stream: pipe[0] for stream, pipe in zip(STREAMS, pipes, strict=True)}
        """The ends of its output, by stream."""
        self._writing = [pipe[1] for pipe in pipes]
        self._said = b""
        for descriptor in self.reading.values():
            os.set_blocking(descriptor, False)

    def execute(self, directory: str | None) -> subprocess.Popen[bytes]:
        """Run its command in a session of its own, to which the kernel puts an end when this process ends.

        Raises:
            OSError: it cannot be run.
        """
        lifeline = self._its_lifeline.fileno()
        return subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=self._writing[0],
            stderr=self._writing[1],
            env=dict(self.environment),
            cwd=directory,
            pass_fds=[lifeline],
            start_new_session=True,
            preexec_fn=lambda: kill_group_when_peer_closes(lifeline),  # noqa: PLW1509 - this process has one thread
        )

    def give(self) -> None:
        """Hand over its ends to the warm server that forks it.

        Raises:
            OSError: the server does not take them, or they are gone already.
        """
        assert self.request is not None
        with open(os.devnull, "rb") as nothing:
            self.request.give([nothing.fileno(), *self._writing, self._its_lifeline.fileno()])

    def release(self) -> None:
        """Let it begin, if it waits for that."""
        with contextlib.suppress(OSError):  # it was killed
            self.lifeline.send(b"!")

    def close_its_ends(self) -> None:
        """Leave its ends to it alone."""
        self._its_lifeline.close()
        while self._writing:
            os.close(self._writing.pop())

    def hear(self) -> bool:
        """Take in what it says on its lifeline of how it ends; whether more may come."""
        try:
            data = self.lifeline.recv(64)
        except BlockingIOError:
            return True
        except ConnectionResetError:
            data = b""
        self._said = (self._said + data)[-64:]
        return bool(data)

    @property
    def exit_code_said(self) -> int | None:
        """What it has said on its lifeline of how it ends; None if nothing, or nothing that is an exit code.

        The program may write to its lifeline, too.
        """
        found = _EXIT_CODE.search(self._said)
        return int(found[1]) if found is not None and int(found[1]) <= MAX_EXIT_CODE else None
