"""What an agent needs to connect to its launcher, and the two lines with which that begins.

The agent sends a `Greeting`, and the launcher its `Answer`: JSON objects, a line each. Then the connection
waits until the launcher wants the agent, whose messages `protocol` has, or tells the `Outcome` of the job.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Self

VARIABLE = "EDT_INVITATION"
"""The environment variable that may have an invitation."""

MAX_LINE = 2**16
"""Bytes of a greeting or an answer."""


class InvitationError(ValueError):
    """It is no invitation, greeting or answer."""


@dataclass(frozen=True)
class _Line:
    @property
    def text(self) -> str:
        """The line, without its end."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str | bytes) -> Self:
        """Read a line.

        Raises:
            InvitationError: it is something else. The message does not quote it, as it may have a token.
        """
        try:
            content: dict[str, Any] = json.loads(text)
            line = cls(**content)
        except (ValueError, TypeError, RecursionError):
            raise InvitationError(f"no {cls.__name__.lower()}") from None
        fields = cls.__dataclass_fields__
        if any(type(getattr(line, name)) is not field.type for name, field in fields.items()):
            raise InvitationError(f"a value of the {cls.__name__.lower()} has another type")
        return line


@dataclass(frozen=True)
class Invitation(_Line):
    """Where a launcher listens, and how both sides know each other.

    Attributes:
        addresses: of the launcher's machine; the first one that leads to it is used.
        port: TCP port.
        fingerprint: SHA-256 of the launcher's certificate, in hexadecimal digits.
        token: the job's; whoever has it can be a host of the job.
    """

    addresses: list  # type: ignore[type-arg]  # of strings
    port: int
    fingerprint: str
    token: str = field(repr=False)


@dataclass(frozen=True)
class Greeting(_Line):
    """What an agent says of itself.

    Attributes:
        instance: another one for each process that connects agents.
        slots, devices: what its host has; 0 and none where the launcher knows that from somebody else.
        number: orders hosts, the first one 0; hosts with the same number are ordered by name.
    """

    token: str = field(repr=False)
    host: str
    version: int
    instance: str
    slots: int = 0
    devices: list = field(default_factory=list)  # type: ignore[type-arg]  # of strings
    number: int = 0


@dataclass(frozen=True)
class Answer(_Line):
    """`refused` is the reason for which the launcher does not take the agent; empty if it does."""

    refused: str = ""


@dataclass(frozen=True)
class Outcome(_Line):
    """The job has ended; `exit_code` is the launcher's."""

    exit_code: int
