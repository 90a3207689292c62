"""The messages between an agent and its warm server, which forks the agent's workers.

`Imported` comes over the channel between the two, once. Everything else goes over one connection for each
worker: the agent sends `Fork`, then the descriptors of the worker once it has `Ready`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from edt_messages.codec import Codec
from edt_messages.records import Number, Seconds, Serial

MAX_LINE = 2**26
"""Bytes of a line, with its newline. The longest is `Fork`, with an environment."""


class Message:
    """Base of all messages."""


_codec = Codec[Message](MAX_LINE)
encode, decode = _codec.encode, _codec.decode


# From the agent to the warm server.


@_codec.message("fork")
@dataclass(frozen=True)
class Fork(Message):
    """Fork a worker.

    Attributes:
        script: path of its script; None for a module.
        module: name of its module; None for a script.
        arguments: of the program.
        command: the whole command, for those who list processes.
        directory: working directory.
        environment: all environment variables.
        umask: of new files.
        ignored: numbers of the signals that it ignores from the start, as a program does under nohup; None:
            those that the server ignores.
    """

    script: str | None
    module: str | None
    arguments: tuple[str, ...]
    command: tuple[str, ...]
    directory: str
    environment: Mapping[str, str]
    umask: Number
    ignored: tuple[Number, ...] | None = None


# From the warm server to the agent.


@_codec.message("imported")
@dataclass(frozen=True)
class Imported(Message):
    """The server has imported what the program needs, and forks workers unless it has `refused`.

    Attributes:
        seconds: that it took.
        imports: names of the packages, without the standard library's.
        private: bytes of its own memory; None if unknown.
        refused: why workers cannot be forked; None if they can.
    """

    seconds: Seconds
    imports: tuple[str, ...]
    private: Serial | None = None
    refused: str | None = None


@_codec.message("ready")
@dataclass(frozen=True)
class Ready(Message):
    """The server has the request, and takes the worker's descriptors."""


@_codec.message("forked")
@dataclass(frozen=True)
class Forked(Message):
    """The worker's process runs, and waits on its lifeline until it may begin."""

    pid: Number


@_codec.message("exited")
@dataclass(frozen=True)
class Exited(Message):
    """The worker's process has ended; `status` is that of waitpid."""

    status: Number
