"""The driver's end of the socket to edt-launch: JSON, one message a line.

=====================================================================  =======================================
driver to launcher
{"do": "train", "number": 1, "program": [...], "max_workers": 16}      run executors; `number` counts from 1
{"do": "limit", "max_workers": 3}                                      from now on at most so many
launcher to driver
{"ended": {"exit_code": 0, "message": ""}}                             one for each train
=====================================================================  =======================================

The end of the stream tells either side that the other is gone. Unknown messages are errors.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edt_hvd.wmla.errors import TrainingFailedError, WmlaError

VARIABLE = "EDT_WMLA_LAUNCHER"
"""Names the inherited socket in the environment of a driver."""

GONE = "edt-launch is gone, and the executors with it; its log says why"


@dataclass(frozen=True)
class Ended:
    """How the executors of one training have ended."""

    exit_code: int
    message: str

    def check(self) -> None:
        """Raise `TrainingFailedError` unless they ended well."""
        if self.exit_code != 0:
            raise TrainingFailedError(
                f"the training ended with exit code {self.exit_code}: "
                f"{self.message or 'see the logs of the executors'}"
            )


def executor_program(script: str, folder: Path) -> list[str]:
    """The command of an executor: `script` up to the training that `folder` is of."""
    return [sys.executable, "-m", "edt_hvd.wmla.executor", script, str(folder)]


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
        self._send({"do": "train", "number": number, "program": program, "max_workers": max_workers})

    def limit(self, max_workers: int) -> None:
        """Cap the number of executors of the training under way."""
        self._send({"do": "limit", "max_workers": max_workers})

    def receive(self) -> Ended | None:
        """Read what has come; the end of the executors once it is told, else None.

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
        self._received += part
        line, separator, rest = self._received.partition(b"\n")
        if not separator:
            return None
        self._received = rest
        return _ended(line)

    def close(self) -> None:
        """Close this copy of the socket."""
        self._socket.close()

    def _send(self, message: Mapping[str, Any]) -> None:
        try:
            self._socket.sendall(json.dumps(message).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError) as error:
            raise TrainingFailedError(GONE) from error


def _ended(line: bytes) -> Ended:
    try:
        ended = json.loads(line)["ended"]
        return Ended(int(ended["exit_code"]), str(ended["message"]))
    except (ValueError, LookupError, TypeError) as error:
        raise WmlaError(f"edt-launch sent {line[:200]!r}; expected an 'ended' message") from error
