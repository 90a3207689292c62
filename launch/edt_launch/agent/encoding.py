"""Messages of `protocol` as JSON objects, one a line.

Output travels as text with surrogate escapes, pieces of files in base64.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import MISSING, fields
from types import NoneType
from typing import Any, Generic, TypeVar, get_args, get_origin

from edt_launch.agent.protocol import Fetched, Order, Output, Piece, ProtocolError, Report
from edt_launch.core.files.lines import LineSplitter

MAX_LINE = 2**26
"""Bytes of a message at most. The largest is `Setup`, with an environment."""

_IN_BASE64 = (Piece, Fetched)

_M = TypeVar("_M", bound=Order | Report)


class Reader(Generic[_M]):
    """Messages of some classes (`Order` or `Report`), from whatever pieces of the stream have been read."""

    def __init__(self, kinds: Any) -> None:
        self._kinds = {kind.__name__.lower(): kind for kind in get_args(kinds)}
        self._lines = LineSplitter(longest=MAX_LINE)

    def feed(self, data: bytes) -> Iterator[_M]:
        """The messages that `data` completes.

        Raises:
            ProtocolError: something is no message; the stream is of no use any more.
        """
        for line in self._lines.feed(data):
            yield self._parse(line)
        if self._lines.skipped:
            raise ProtocolError(f"a message is longer than {MAX_LINE} bytes")

    def _parse(self, line: bytes) -> _M:
        try:
            content = json.loads(line)
            kind = self._kinds[content.pop("kind")]
            if kind in _IN_BASE64:
                content["data"] = base64.b64decode(content["data"], validate=True)
            values = {
                field.name: _convert(field.type, content.pop(field.name))
                for field in fields(kind)
                if field.name in content or field.default is MISSING
            }
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ProtocolError(f"no message: {line[:80]!r} ({error!r})") from None
        if content:
            raise ProtocolError(f"{kind.__name__} has no {', '.join(content)}")
        message: _M = kind(**values)
        return message


def write(message: Order | Report) -> bytes:
    """The line of a message."""
    content: dict[str, Any] = {"kind": type(message).__name__.lower(), **vars(message)}
    if isinstance(message, _IN_BASE64):
        content["data"] = base64.b64encode(message.data).decode()
    elif isinstance(message, Output):
        content["data"] = message.data.decode("utf-8", "surrogateescape")
    return json.dumps(content).encode() + b"\n"


def _convert(kind: Any, value: Any) -> Any:
    """A field's value as its class has it.

    Raises:
        TypeError: it is another type's.
    """
    if NoneType in get_args(kind):
        return None if value is None else _convert(get_args(kind)[0], value)
    if kind is bytes and isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if kind is float and type(value) is int:
        return float(value)
    if get_origin(kind) is tuple and isinstance(value, list) and all(isinstance(v, str) for v in value):
        return tuple(value)
    is_environment = isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
    if type(value) is kind or (get_origin(kind) is dict and is_environment):
        return value
    raise TypeError(f"{value!r:.40} is no {kind}")
