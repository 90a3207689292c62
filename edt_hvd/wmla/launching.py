"""The driver's end of the socket to edt-launch; `edt_messages.wmla` has the messages."""

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from edt_hvd.wmla.errors import TrainingFailedError, WmlaError
from edt_messages import wmla
from edt_messages.codec import MessageError

VARIABLE = "EDT_WMLA_LAUNCHER"
"""Names the inherited socket in the environment of a driver."""

MAX_WORKERS_VARIABLE = "EDT_WMLA_MAX_WORKERS"
"""Tells a driver how many executors its job may have."""

GONE = "edt-launch is gone, and the executors with it; its log says why"


driver_process = 0
"""The process that runs the script of a job: it alone may use the socket."""


def is_driver(environ: Mapping[str, str]) -> bool:
    """Whether this process is the driver of a job.

    Raises:
        WmlaError: it is another process that the script has started.
    """
    if VARIABLE in environ and driver_process != os.getpid():
        raise WmlaError(
            f"train() in a process that the script has started; call it in the script, or unset {VARIABLE} "
            "to have this process train by itself"
        )
    return VARIABLE in environ


def executor_program(script: str, folder: Path, digest: str) -> list[str]:
    """The command of an executor of the training in `folder`, which `script` has asked for."""
    return [sys.executable, "-m", "edt_hvd.wmla.executor", script, str(folder), digest]


class Launcher:
    """Asks edt-launch for executors."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._received = b""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Launcher":
        """The launcher whose socket the environment names.

        Raises:
            WmlaError: the variable names no open socket.
        """
        try:
            return cls(socket.socket(fileno=os.dup(int(environ[VARIABLE]))))
        except (OSError, ValueError) as error:
            raise WmlaError(
                f"{VARIABLE}={environ[VARIABLE]!r} names no open socket ({error}); edt-launch --wmla sets it "
                "for the script it starts: unset it in other processes"
            ) from error

    def fileno(self) -> int:
        """For `select`."""
        return self._socket.fileno()

    def train(self, number: int, program: list[str], max_workers: int) -> None:
        """Ask for the executors of training `number`."""
        self._send(wmla.Train(number, tuple(program), max_workers))

    def limit(self, max_workers: int) -> None:
        """Cap the number of executors of the training under way."""
        self._send(wmla.Limit(max_workers))

    def cancel(self, number: int) -> None:
        """Have the executors of training `number` ended."""
        self._send(wmla.Cancel(number))

    def receive(self, number: int) -> list[wmla.ExecutorMessage | wmla.Ended]:
        """Read what has come of training `number`.

        Raises:
            TrainingFailedError: the launcher is gone.
            WmlaError: a message that is none of the above.
        """
        try:
            part = self._socket.recv(65536)
        except ConnectionResetError:
            part = b""
        if not part:
            raise TrainingFailedError(GONE)
        *lines, self._received = (self._received + part).split(b"\n")
        return [one for one in map(_report, lines) if one.number == number]  # others were cancelled

    def close(self) -> None:
        """Close this copy of the socket."""
        self._socket.close()

    def _send(self, message: wmla.Message) -> None:
        try:
            self._socket.sendall(wmla.encode(message))
        except (BrokenPipeError, ConnectionResetError) as error:
            raise TrainingFailedError(GONE) from error


def _report(line: bytes) -> wmla.ExecutorMessage | wmla.Ended:
    try:
        message = wmla.decode(line)
    except MessageError as error:
        raise WmlaError(f"edt-launch sent what this version does not understand: {error}") from error
    if not isinstance(message, wmla.ExecutorMessage | wmla.Ended):
        raise WmlaError(f"edt-launch sent {message}, expected an `ExecutorMessage` or an `Ended`")
    return message
