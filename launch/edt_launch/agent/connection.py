"""An agent's connection to its launcher: orders come, reports go, and neither is waited for."""

import contextlib
import os
import selectors
import sys
import time
from collections.abc import Callable

from edt_launch.agent import encoding, protocol
from edt_launch.agent.conversation import Conversation
from edt_launch.agent.warm.server import CHUNK

FLUSH_TIMEOUT = 5.0
"""Seconds that the launcher has at the end to read what is still to be sent."""


class LauncherConnection:
    """Reads orders from one descriptor, and writes reports to another.

    Args:
        selector: calls what is registered when a descriptor can be read.
        obey: carries out an order; it may raise `ProtocolError`.
        ended: called when no more orders can come.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        reading: int,
        writing: int,
        obey: Callable[[protocol.Order], None],
        ended: Callable[[], None],
    ) -> None:
        self._selector = selector
        self._reading, self._writing = reading, writing
        self._obey, self._ended = obey, ended
        self._reader: encoding.Reader[protocol.Order] = encoding.Reader(protocol.Order)
        self._conversation = Conversation(checks_reports=False)
        self._unsent = bytearray()

    def open(self) -> None:
        """Hear orders from now on."""
        for descriptor in (self._reading, self._writing):
            os.set_blocking(descriptor, False)
        self._selector.register(self._reading, selectors.EVENT_READ, self._hear)

    def stop_hearing(self) -> None:
        """Take no more orders: the launcher is gone, or counts as such."""
        if self._reading in self._selector.get_map():
            self._selector.unregister(self._reading)

    def send(self, report: protocol.Report) -> None:
        """Send a report, as soon as the launcher has room for it."""
        self._unsent += encoding.write(report)
        self._write()

    def send_rest(self) -> None:
        """Send what there is room for, and be woken for the rest."""
        self._write()
        is_awaited = self._writing in self._selector.get_map()
        if self._unsent and not is_awaited:
            self._selector.register(self._writing, selectors.EVENT_WRITE)
        elif is_awaited and not self._unsent:
            self._selector.unregister(self._writing)

    def flush(self) -> None:
        """Send everything, unless that takes longer than `FLUSH_TIMEOUT`."""
        deadline = time.monotonic() + FLUSH_TIMEOUT
        while self._unsent and time.monotonic() < deadline:
            self._write()
            time.sleep(0.01 if self._unsent else 0)

    def _write(self) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                while self._unsent:
                    del self._unsent[: os.write(self._writing, self._unsent)]
            except (BrokenPipeError, ConnectionResetError):  # the end of the other direction tells the rest
                self._unsent.clear()

    def _hear(self) -> None:
        try:
            data = os.read(self._reading, CHUNK)
        except BlockingIOError:
            return
        except ConnectionResetError:
            data = b""
        try:
            for order in self._reader.feed(data):
                self._conversation.order(order)
                self._obey(order)
        except protocol.ProtocolError as error:
            print(f"edt agent: the launcher has sent {error}", file=sys.stderr, flush=True)
            data = b""
        if not data:
            self._ended()
