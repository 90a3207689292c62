"""Worlds of `torch.distributed`: the members of a generation meet at a TCPStore of its own.

The stores live in a process beside this one, because they need torch: it is told `open`
and a port, or 0, and answers with the port; or `close` and a port. It ends with its standard input.
"""

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from edt_launch.core.errors import StartError
from edt_launch.core.system.ports import VARIABLE, PortRange, preloaded
from edt_launch.membership.protocol import Assignment, Worker

END_TIMEOUT = 5.0
"""Seconds that the process has to end once nobody needs it."""


def _program() -> str:
    """The file that serves stores: run as a script, it imports torch and nothing else."""
    spec = importlib.util.find_spec("edt_hvd")
    if spec is None or spec.origin is None:
        raise StartError("edt_hvd is not installed, which serves the stores of torch: install it, too")
    return str(Path(spec.origin).parent / "torchrun" / "store.py")


def _unusable(port: int, reason: str) -> StartError:
    return StartError(
        f"port {port}, where the workers are to meet, cannot be used: {reason}; choose another one, or leave "
        "it out for a free one"
    )


class TorchStoreWorld:
    """Serves a store for each generation: the first one at `port`, the others at free ones of `ports`.

    `port` is 0 for any of these.

    Raises:
        StartError: the process that serves them cannot be started, or the port is another process's.
    """

    def __init__(
        self, address_towards: Callable[[Iterable[str]], str], port: int = 0, ports: PortRange | None = None
    ) -> None:
        self._address_towards = address_towards
        self._port = port
        if port:
            try:
                socket.create_server(("", port)).close()
            except OSError as error:
                raise _unusable(port, os.strerror(error.errno or 0)) from None
        self._ports: dict[int, int] = {}
        own = {} if ports is None else {VARIABLE: str(ports)}
        environment = {**os.environ, **own, **preloaded({**os.environ, **own})}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", _program()],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            raise StartError(f"cannot run {sys.executable}: {error.strerror}") from None

    def variables(self, worker: Worker, hosts: Iterable[str]) -> dict[str, str]:
        """Where the worker's generation meets."""
        port = self._ports.get(worker.generation) or self._ask(f"open {self._port}")
        if not port:
            raise _unusable(self._port, "another process has it")
        self._port = 0
        self._ports[worker.generation] = port
        return {
            "MASTER_ADDR": self._address_towards(hosts),
            "MASTER_PORT": str(port),
            "TORCHELASTIC_USE_AGENT_STORE": "True",
        }

    def open(self, generation: int, assignments: Sequence[Assignment]) -> tuple[str, int]:
        """Serve no older generations any more."""
        for old in [number for number in self._ports if number < generation]:
            self._ask(f"close {self._ports.pop(old)}")
        return self._address_towards(at.host for at in assignments), self._ports[generation]

    def abort(self) -> None:
        """Nobody waits at a store: workers of a broken world are ended."""

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(END_TIMEOUT)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _ask(self, order: str) -> int:
        """The answer to an order: a port.

        Raises:
            StartError: there is none.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(f"{order}\n")
            return int(self._process.stdout.readline())
        except (OSError, ValueError):
            how = f"it has ended with exit code {self._process.wait()}"
            raise StartError(f"the process with the stores of torch does not answer: {how}") from None
