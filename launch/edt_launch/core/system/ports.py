"""Ports to listen on: any, or those of `--port-range`.

Programs leave the choice to the system by binding port 0. Our own processes choose from the range themselves.
Workers have `native/ports.cpp` preloaded, which chooses for every library that they use.
"""

import errno
import importlib.util
import random
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from edt_launch.core.errors import StartError

VARIABLE = "EDT_PORT_RANGE"
"""The environment variable with the range, for agents and workers."""

LIBRARY = "_edt_ports"
"""The name under which the compiled `native/ports.cpp` is installed."""

LOWEST, HIGHEST = 1024, 65535
"""Ports that need no privileges."""


@dataclass(frozen=True)
class PortRange:
    """The ports from `low` to `high`, both included."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"{self.low}:{self.high}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "20000:20999".

        Raises:
            ValueError: it is no range.
        """
        found = re.fullmatch(r"([0-9]{1,5}):([0-9]{1,5})", text)
        if found is not None and LOWEST <= int(found[1]) <= int(found[2]) <= HIGHEST:
            return cls(int(found[1]), int(found[2]))
        raise ValueError(f"{text[:40]!r}: expected LOW:HIGH, ports from {LOWEST} to {HIGHEST}")

    def shuffled(self) -> Iterator[int]:
        """Every port once, from a random one on, as many processes look for one at the same time."""
        size = self.high - self.low + 1
        first = random.randrange(size)
        return (self.low + (first + index) % size for index in range(size))


class PortsUsedError(StartError):
    """No port of the range is free."""

    def __init__(self, ports: PortRange) -> None:
        super().__init__(
            f"no port of --port-range {ports} is free on {socket.gethostname()}: give a larger range, or end "
            "what listens there"
        )


def bound(address: str, ports: PortRange | None = None) -> socket.socket:
    """A TCP socket with a port of its own; the system chooses it where there is no range.

    Raises:
        PortsUsedError: no port of the range is free.
        OSError: the address is not this machine's.
    """
    if ports is None:
        return _bound(address, 0, reuses=True)
    for reuses in (False, True):  # ports whose last connections have just ended come last
        for port in ports.shuffled():
            try:
                return _bound(address, port, reuses)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
    raise PortsUsedError(ports)


def listening(address: str, ports: PortRange | None = None, backlog: int = 128) -> socket.socket:
    """A TCP socket that listens; raises as `bound`."""
    found = bound(address, ports)
    try:
        found.listen(backlog)
    except BaseException:
        found.close()
        raise
    return found


def _bound(address: str, port: int, reuses: bool) -> socket.socket:
    found = socket.socket()
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuses)
        found.bind((address, port))
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, True)
    except BaseException:
        found.close()
        raise
    return found


def range_in(environment: Mapping[str, str]) -> PortRange | None:
    """The range of a job with these variables; None if it may listen on any port."""
    text = environment.get(VARIABLE)
    return None if text is None else PortRange.parse(text)


def preloaded(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process that is to listen on ports of the range in `environment`, if it has one.

    Raises:
        StartError: the library that chooses the ports is not built.
    """
    if VARIABLE not in environment:
        return {}
    spec = importlib.util.find_spec(LIBRARY)
    if spec is None or spec.origin is None:
        raise StartError(
            f"--port-range needs compiled code that is missing on {socket.gethostname()}: install a C++ "
            "compiler and run 'make setup' there"
        )
    given = environment.get("LD_PRELOAD")
    return {"LD_PRELOAD": f"{spec.origin}:{given}" if given else spec.origin}
