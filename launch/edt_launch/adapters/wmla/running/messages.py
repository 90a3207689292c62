"""What the driver and edt-launch say to each other: JSON, one message a line, over a socket.

======================================================================  ======================================
driver to launcher
``{"do": "train", "number": 1, "program": [...], "max_workers": 16}``    run executors; `number` counts from 1
``{"do": "limit", "max_workers": 3}``                                    while it trains: at most so many
launcher to driver
``{"ended": {"exit_code": 0, "message": ""}}``                           one for each train
======================================================================  ======================================

The end of the stream tells either side that the other is gone. Unknown messages are errors.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MOST_TEXT = 2**20
"""Characters of a message at most."""

MOST_WORKERS = 2**20


@dataclass(frozen=True)
class Train:
    """Run executors.

    Attributes:
        number: which call of train() it is, from 1.
        program: their command.
        max_workers: more of them would idle.
    """

    number: int
    program: tuple[str, ...]
    max_workers: int


@dataclass(frozen=True)
class Limit:
    """From now on at most so many executors."""

    max_workers: int


@dataclass(frozen=True)
class Nonsense:
    """Something that is no message."""

    text: str


Request = Train | Limit | Nonsense


class Requests:
    """The driver's messages, from whatever pieces of them have been read."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Request]:
        """The messages that `data` completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MOST_TEXT:
            lines, self._rest = [*lines, self._rest], b""
        yield from map(_request, lines)


def ended(exit_code: int, message: str) -> bytes:
    """How a training has ended, as the driver is told."""
    return json.dumps({"ended": {"exit_code": exit_code, "message": message}}).encode() + b"\n"


def _request(line: bytes) -> Request:
    text = line.decode(errors="replace")
    try:
        return _parse(json.loads(text)) or Nonsense(text)
    except (ValueError, RecursionError):
        return Nonsense(text)


def _parse(message: Any) -> Request | None:
    match message:
        case {"do": "train", "number": int(number), "program": [*words], "max_workers": int(most)} if (
            number >= 1 and words and all(isinstance(word, str) for word in words) and _is_count(most)
        ):
            return Train(number, tuple(words), most)
        case {"do": "limit", "max_workers": int(most)} if _is_count(most):
            return Limit(most)
    return None


def _is_count(number: int) -> bool:
    return 1 <= number <= MOST_WORKERS
