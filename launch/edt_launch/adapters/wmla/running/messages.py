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

from edt_launch.core.lines import LineSplitter

MOST_TEXT = 2**20
"""Bytes of a message at most."""

MOST_WORKERS = 2**20


@dataclass(frozen=True)
class Train:
    """Run executors of this command; `number` counts the calls of train(), from 1, and more would idle."""

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
        self._lines = LineSplitter(longest=MOST_TEXT)

    def feed(self, data: bytes) -> Iterator[Request]:
        """The messages that `data` completes; a line that is too long is none."""
        yield from map(_request, self._lines.feed(data))
        if self._lines.skipped:
            yield Nonsense(f"a line of more than {MOST_TEXT:,} bytes")


def ended(exit_code: int, message: str) -> bytes:
    """How a training has ended, as the driver is told."""
    return json.dumps({"ended": {"exit_code": exit_code, "message": message}}).encode() + b"\n"


def _request(line: bytes) -> Request:
    text = line.decode(errors="replace")
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return Nonsense(text)
    match message:
        case {"do": "train", "number": int(number), "program": [*words], "max_workers": int(most)} if (
            number >= 1 and words and all(isinstance(word, str) for word in words) and _is_count(most)
        ):
            return Train(number, tuple(words), most)
        case {"do": "limit", "max_workers": int(most)} if _is_count(most):
            return Limit(most)
    return Nonsense(text)


def _is_count(number: int) -> bool:
    return 1 <= number <= MOST_WORKERS
