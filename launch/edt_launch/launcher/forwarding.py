"""Passing on what workers print.

Horovod's own way stops at a byte that is no UTF-8, and goes on as long as anybody has the worker's end of the
pipe: for ever, if the worker has left a process behind.
"""

import codecs
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

from edt_launch.appender import Appender
from edt_launch.launcher.supervise import CHUNK, LEFTOVER_GRACE
from edt_launch.view.output import MAX_LINE

LOOK_INTERVAL = 0.5
"""Seconds between two looks whether the worker has gone, while it prints nothing."""

Printed = Callable[[int, str], Path]
"""The file for what a worker, by its serial number, prints to a stream."""


class Forwarder:
    """Prefixes each line of a worker as Horovod does: ``[<serial>]<stdout>:``.

    Args:
        printed: names the files that get the same byte by byte; None for no such files.
    """

    def __init__(self, printed: Printed | None = None) -> None:
        self._printed = printed

    def __call__(
        self, source: Any, into: TextIO, stream: str, worker: int, _: object, is_over: threading.Event
    ) -> None:
        """Pass on everything from the connection `source`; returns at its end, or soon after `is_over`."""
        copy = None if self._printed is None else Appender(self._printed(worker, stream), _complain)
        decode = codecs.getincrementaldecoder("utf-8")("backslashreplace").decode
        lines = _Lines()
        for data in _read(source, is_over):
            if copy is not None:
                copy.write_bytes(data)
                copy.flush()
            _write(into, stream, worker, lines.feed(decode(data)))
        _write(into, stream, worker, [*lines.feed(decode(b"", True)), *lines.close()])
        source.close()
        if copy is not None:
            copy.close()


class Forwarding(threading.Thread):
    """The thread in which a `Forwarder` passes on one stream of a worker.

    Args:
        target: the forwarder.
        args: what Horovod gives it.
    """

    def __init__(self, target: Callable[..., None], args: tuple[object, ...]) -> None:
        self._is_over = threading.Event()
        super().__init__(target=target, args=(*args, self._is_over), daemon=True)

    def join(self, timeout: float | None = None) -> None:
        """Called when the worker has gone: who else has its end of the pipe gets `LEFTOVER_GRACE`."""
        super().join(LEFTOVER_GRACE)
        self._is_over.set()
        super().join(timeout)


def in_thread(target: Callable[..., None], args: tuple[object, ...]) -> Forwarding:
    """Start a forwarding, as Horovod starts threads."""
    forwarding = Forwarding(target, args)
    forwarding.start()
    return forwarding


def _read(source: Any, is_over: threading.Event) -> Iterator[bytes]:
    while not is_over.is_set():
        if source.poll(LOOK_INTERVAL):
            data = os.read(source.fileno(), CHUNK)
            if not data:
                return
            yield data
    if source.poll(0):
        yield os.read(source.fileno(), CHUNK)  # a pipe holds no more


class _Lines:
    """Takes text apart into lines with their ends; one much longer than `MAX_LINE` is broken, not held."""

    def __init__(self) -> None:
        self._held: list[str] = []
        self._length = 0

    def feed(self, text: str) -> Iterator[str]:
        """The lines that `text` completes."""
        for part in re.split(r"([\r\n])", text):
            if part in ("\r", "\n"):
                yield self._taken() + part
                continue
            if self._length and self._length + len(part) > MAX_LINE:
                yield self._taken() + "\n"
            self._held.append(part)
            self._length += len(part)

    def close(self) -> Iterator[str]:
        """The last words, which have no end."""
        if self._length:
            yield self._taken()

    def _taken(self) -> str:
        line = "".join(self._held)
        self._held, self._length = [], 0
        return line


def _write(into: TextIO, stream: str, worker: int, lines: Iterable[str]) -> None:
    for line in lines:
        into.write(f"[{worker}]<{stream}>:{line}")
    into.flush()


def _complain(text: str) -> None:
    print(text, file=sys.stderr)
