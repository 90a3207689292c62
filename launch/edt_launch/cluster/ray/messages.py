"""What the bridge to a Ray cluster is told, and what it tells: JSON, one message a line. Pure."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Want:
    """How many devices jobs could use, those that they have included, and which they have."""

    slots: int
    used: tuple[tuple[str, str], ...] = ()
    """Host and device."""


@dataclass(frozen=True)
class Open:
    """Start an agent on a host; answered by `Ended` with the same number.

    `words` are the arguments of the agent's command, `text` is what it reads from standard input.
    """

    number: int
    host: str
    words: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class HostView:
    """A node: the devices that are held of it, and all that it has."""

    name: str
    address: str
    devices: tuple[str, ...]
    total: int
    free: int
    is_draining: bool


@dataclass(frozen=True)
class Picture:
    """What there is now. `reason` is why jobs wait for nodes; empty if they do not."""

    kind: str
    hosts: tuple[HostView, ...]
    reason: str = ""


@dataclass(frozen=True)
class Ended:
    """The command of an agent has ended, or could not be started; `text` is why, or what it said last.

    `exit_code` is None if nobody knows it.
    """

    number: int
    exit_code: int | None
    text: str = ""


@dataclass(frozen=True)
class Failed:
    """There is no way to the cluster, and the bridge ends."""

    text: str


Message = Want | Open | Picture | Ended | Failed

_KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Want, Open, Picture, Ended, Failed)}


def write(message: Message) -> bytes:
    """The line of a message."""
    return json.dumps({"kind_of_message": type(message).__name__, **asdict(message)}).encode() + b"\n"


def read(line: bytes) -> Message:
    """The message of a line.

    Raises:
        ValueError: it is none.
    """
    try:
        content = json.loads(line)
        kind = _KINDS[content.pop("kind_of_message")]
        message: Message = kind(**{field.name: _frozen(content[field.name]) for field in fields(kind)})
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"no message of Ray's bridge: {line[:80]!r} ({error!r})") from None
    if isinstance(message, Picture):
        return Picture(message.kind, tuple(_host(view) for view in message.hosts), message.reason)
    return message


def _host(view: Any) -> HostView:
    return HostView(**{name: _frozen(value) for name, value in view.items()})


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value
