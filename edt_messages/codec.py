"""Messages as lines: JSON objects of bounded size, whose `type` names the class of the message."""

import json
from collections.abc import Callable
from typing import Generic, TypeVar

from edt_messages.records import Convert, content, reader

_M = TypeVar("_M")
_Class = TypeVar("_Class", bound=type)


class MessageError(ValueError):
    """A line is no message."""

    def __init__(self, line: bytes, reason: str) -> None:
        super().__init__(f"{line[:80]!r} is no message: {reason}")


class UnknownMessageError(MessageError):
    """A line is a message of a type that this version does not know."""


class Codec(Generic[_M]):
    """Encodes and decodes the messages of one channel, which are frozen dataclasses.

    Args:
        max_line: bytes of a line, with its newline; longer ones are not decoded.
    """

    def __init__(self, max_line: int) -> None:
        self._max_line = max_line
        self._readers: dict[str, Convert] = {}
        self._names: dict[type, str] = {}

    def message(self, name: str) -> Callable[[_Class], _Class]:
        """Register a class of messages, by its type on the wire."""

        def register(cls: _Class) -> _Class:
            self._readers[name], self._names[cls] = reader(cls), name
            return cls

        return register

    def type_of(self, message: _M) -> str:
        """The type of a message on the wire."""
        return self._names[type(message)]

    def encode(self, message: _M) -> bytes:
        """The line of a message, with its newline.

        Raises:
            ValueError: it is too long.
        """
        line = json.dumps({"type": self.type_of(message), **content(message)}).encode() + b"\n"
        if len(line) > self._max_line:
            kind = self.type_of(message)
            raise ValueError(f"the {kind} message has {len(line):,} bytes, {self._max_line:,} are allowed")
        return line

    def decode(self, line: bytes) -> _M:
        """The message in a line; fields that its class does not have are ignored.

        Raises:
            UnknownMessageError: its type is unknown.
            MessageError: it is too long, no JSON object, or a field is missing or wrong.
        """
        if len(line) > self._max_line:
            raise MessageError(line, f"it has {len(line)} bytes, {self._max_line} are allowed")
        try:
            written = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise MessageError(line, str(error)) from None
        if not isinstance(written, dict) or not isinstance(written.get("type"), str):
            raise MessageError(line, "it is no JSON object with a type")
        if written["type"] not in self._readers:
            raise UnknownMessageError(line, f"its type {written['type'][:40]!r} is unknown")
        try:
            message: _M = self._readers[written["type"]](written)
        except ValueError as error:
            raise MessageError(line, str(error)) from None
        return message
