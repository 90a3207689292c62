"""The messages between the launcher and an agent: JSON objects, one a line, one stream in each direction.

======================  ================================================================================
from the launcher
`Setup`                 first, once: what all workers of the job have in common
`Start`                 start a worker
`Kill`                  kill a worker and everything that it has started
`Taken`                 so many bytes of output have been dealt with; room for as many again
end of the stream       kill whatever is still there, and end
from the agent
`Hello`                 first, once
`Warm`                  the warm server has got ready, or says why it cannot fork
`Started`               a worker's process runs
`Output`                a worker has printed something
`Exited`                a worker's process has ended, and all that it has printed has been sent
`Swept`                 last: so many processes that workers had left behind were killed
======================  ================================================================================

Bytes travel as text with surrogate escapes, so that they arrive as they were. Standard library only: every
host starts an agent, and workers wait for it.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, get_args, get_origin

VERSION = 1
"""Of these messages; launcher and agent must have the same."""

MAX_LINE = 2**26
"""Bytes of a message at most. The largest is `Setup`, with an environment."""

WINDOW = 2**20
"""Bytes of output that an agent sends before it waits for `Taken`."""


class ProtocolError(ValueError):
    """The other side has sent something that is no message of this protocol."""


@dataclass(frozen=True)
class Setup:
    """What all workers of a job have in common.

    Attributes:
        command: what each worker runs.
        environment: the variables of every worker.
        directory: where workers start.
        forks: whether workers may be forked from a warm server.
        log: the warm server's log; None for none.
        inherits: whether the agent's own variables are passed on, too, behind the others.
        sweeps: whether processes that an earlier agent of the job has left on the host are killed first.
    """

    command: tuple[str, ...]
    environment: dict[str, str]
    directory: str
    forks: bool = True
    log: str | None = None
    inherits: bool = False
    sweeps: bool = False


@dataclass(frozen=True)
class Start:
    """Start the worker with this serial number; `environment` is its own, in front of the job's."""

    worker: int
    environment: dict[str, str]


@dataclass(frozen=True)
class Kill:
    """Kill a worker and everything that it has started."""

    worker: int


@dataclass(frozen=True)
class Taken:
    """So many more bytes of output have been dealt with."""

    size: int


@dataclass(frozen=True)
class Hello:
    """An agent runs."""

    version: int
    pid: int


@dataclass(frozen=True)
class Warm:
    """A warm server has imported what the program needs.

    Attributes:
        pid: its process.
        seconds: how long that took.
        imports: names of the packages.
        private: bytes of its memory; None if unknown.
        refused: why workers cannot be forked from it; None if they can.
    """

    pid: int
    seconds: float
    imports: tuple[str, ...]
    private: int | None = None
    refused: str | None = None


@dataclass(frozen=True)
class Started:
    """A worker's process runs."""

    worker: int
    pid: int


@dataclass(frozen=True)
class Output:
    """A worker has printed `data` to `stream`, "stdout" or "stderr"."""

    worker: int
    stream: str
    data: bytes


@dataclass(frozen=True)
class Exited:
    """A worker's process has ended, with this exit code; negative for a signal."""

    worker: int
    exit_code: int


@dataclass(frozen=True)
class Swept:
    """So many processes that workers had left behind were killed."""

    count: int


Order = Setup | Start | Kill | Taken
"""Messages to an agent."""

Report = Hello | Warm | Started | Output | Exited | Swept
"""Messages from an agent."""

_M = TypeVar("_M", bound=Order | Report)


class Reader(Generic[_M]):
    """Messages of some classes, from whatever pieces of the stream have been read.

    Args:
        kinds: the classes.
    """

    def __init__(self, *kinds: type[_M]) -> None:
        self._kinds = {kind.__name__.lower(): kind for kind in kinds}
        self._pieces: list[bytes] = []
        self._length = 0

    @classmethod
    def of_orders(cls) -> "Reader[Order]":
        """An agent's reader."""
        return Reader(Setup, Start, Kill, Taken)

    @classmethod
    def of_reports(cls) -> "Reader[Report]":
        """A launcher's reader."""
        return Reader(Hello, Warm, Started, Output, Exited, Swept)

    def feed(self, data: bytes) -> Iterator[_M]:
        """The messages that `data` completes.

        Raises:
            ProtocolError: something is no message; the stream is of no use any more.
        """
        *lines, rest = data.split(b"\n")
        for line in lines:
            whole = b"".join((*self._pieces, line))
            self._pieces, self._length = [], 0
            yield self._parse(whole)
        self._pieces.append(rest)
        self._length += len(rest)
        if self._length > MAX_LINE:
            raise ProtocolError(f"a message is longer than {MAX_LINE} bytes")

    def _parse(self, line: bytes) -> _M:
        try:
            content = json.loads(line)
            kind = self._kinds[content.pop("kind")]
            found = {field.name: _convert(field.type, content.pop(field.name)) for field in fields(kind)}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ProtocolError(f"no message: {line[:80]!r} ({error!r})") from None
        if content:
            raise ProtocolError(f"{kind.__name__} has no {', '.join(content)}")
        return kind(**found)


def write(message: Order | Report) -> bytes:
    """The line of a message."""
    content: dict[str, Any] = {"kind": type(message).__name__.lower()}
    for field in fields(message):
        value = getattr(message, field.name)
        content[field.name] = value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value
    return json.dumps(content).encode() + b"\n"


def _convert(kind: Any, value: Any) -> Any:
    """A field's value as its class has it.

    Raises:
        TypeError: it is another type's.
    """
    if isinstance(kind, UnionType):
        return (
            None if value is None else _convert(next(k for k in get_args(kind) if k is not NoneType), value)
        )
    if kind is bytes and isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if get_origin(kind) is tuple and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return tuple(value)
    if get_origin(kind) is dict and _is_environment(value):
        return value
    if isinstance(kind, type) and type(value) is kind:
        return value
    raise TypeError(f"{value!r:.40} is no {kind}")


def _is_environment(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for text in value.values())
