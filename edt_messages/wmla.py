"""The messages between the driver of a WMLA job and the launcher.

They travel over a socket that the driver inherits. Its end tells either side that the other is gone.
"""

from dataclasses import dataclass
from typing import Annotated

from edt_messages.codec import Codec
from edt_messages.records import Count, Number

MAX_LINE = 2**20
"""Bytes of a line, with its newline."""

_Workers = Annotated[int, (1, 2**20 + 1)]
_Program = Annotated[tuple[str, ...], (1, 2**20)]


class Message:
    """Base of all messages."""


_codec = Codec[Message](MAX_LINE)
encode, decode = _codec.encode, _codec.decode


# From the driver to the launcher.


@_codec.message("train")
@dataclass(frozen=True)
class Train(Message):
    """Run executors.

    Attributes:
        number: of this call of `train`, from 1.
        program: the command of an executor.
        max_workers: more executors than that would idle.
    """

    number: Count
    program: _Program
    max_workers: _Workers


@_codec.message("limit")
@dataclass(frozen=True)
class Limit(Message):
    """From now on at most `max_workers` executors."""

    max_workers: _Workers


@_codec.message("cancel")
@dataclass(frozen=True)
class Cancel(Message):
    """End the executors of training `number`; nothing happens if they have ended."""

    number: Count


# From the launcher to the driver.


@_codec.message("executor_message")
@dataclass(frozen=True)
class ExecutorMessage(Message):
    """Text that an executor of training `number` has sent; all of them come before its `Ended`."""

    number: Count
    text: str


@_codec.message("ended")
@dataclass(frozen=True)
class Ended(Message):
    """The executors of training `number` have ended: one for each `Train`.

    Attributes:
        message: empty where there is nothing to say.
    """

    number: Count
    exit_code: Number
    message: str
