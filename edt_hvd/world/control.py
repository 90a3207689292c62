"""This worker's end of the connection to the launcher; `edt_messages.messages` has the messages."""

import contextlib
import os
import signal
import socket
import threading
import traceback
from collections.abc import Callable
from functools import partial
from typing import Protocol

from edt_hvd.errors import CoordinatorLostError
from edt_hvd.world import preemption
from edt_messages import messages
from edt_messages.codec import MessageError, UnknownMessageError
from edt_messages.keepalive import end_with_peer
from edt_messages.messages import Assign, Message, decode, encode

CONNECT_TIMEOUT = 30.0
"""Seconds to wait for the launcher to accept the connection."""

ENDED = 143
"""Exit code of a worker that the launcher ends: that of a process ended by SIGTERM."""

ORPHAN_GRACE = 5.0
"""Seconds that a worker whose launcher is gone has for an orderly end."""


class EventSink(Protocol):
    """Where a worker reports to."""

    def send(self, message: Message) -> None:
        """Send a message; the receiver may be gone."""


class Launcher:
    """The connection to the launcher. Thread-safe; one reader thread, started by `connect`."""

    def __init__(self, address: str, token: str, worker: int) -> None:
        self._address = address
        self._token = token
        self._worker = worker
        self._send_lock = threading.Lock()
        self._changed = threading.Condition()
        self._assignment: Assign | None = None
        self._leave = False
        self.must_save = False
        """Whether this worker, which is to leave, is the last that has the state."""
        self._checkpoints_brought = 0
        self._lost: str | None = None
        self._closing = False
        self.wanted_generation = 0
        """The newest generation that the launcher has announced."""
        self.on_stop: Callable[[int], None] = _ignore
        """Called in the reader thread with the number of every newer generation that is announced."""
        self.on_cut: Callable[[int], None] = _ignore
        """Called in the reader thread with the number of a generation whose world is broken."""

    def connect(self) -> None:
        """Open the connection and say hello.

        Raises:
            CoordinatorLostError: nobody answers at the address.
        """
        host, _, port = self._address.rpartition(":")
        try:
            self._socket = socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT)
        except OSError as error:
            raise CoordinatorLostError(self._address, str(error)) from error
        self._socket.settimeout(None)
        end_with_peer(self._socket)
        self.send(messages.Hello(self._token, self._worker, os.getpid()))
        threading.Thread(target=self._read, name="edt-launcher", daemon=True).start()

    def send(self, message: Message) -> None:
        """Send one message; a launcher that is gone is noticed by the reader, not here."""
        line = encode(message)
        with self._send_lock:
            try:
                self._socket.sendall(line)
            except OSError as error:
                self._note_loss(str(error))

    def wait_until_wanted(self, generation: int) -> None:
        """Wait until the launcher announces a generation of at least that number, or is lost."""
        with self._changed:
            self._changed.wait_for(lambda: self.wanted_generation >= generation or self._lost)

    @property
    def is_lost(self) -> bool:
        """Whether the conversation has ended, on purpose or not."""
        return self._closing or self._lost is not None

    def wait_for_assignment(self, progress: int) -> Assign | None:
        """Announce that this worker is outside any world, and wait for its next assignment.

        Returns:
            The assignment, or None when the worker is to leave.

        Raises:
            CoordinatorLostError: the launcher went away while waiting.
        """
        self.send(messages.AtRendezvous(progress))
        with self._changed:
            self._changed.wait_for(lambda: self._assignment or self._leave or self._lost)
            if self._leave:
                return None
            if self._assignment is None:
                raise CoordinatorLostError(self._address, self._lost or "connection closed")
            assignment, self._assignment = self._assignment, None
            return assignment

    def wait_for_checkpoint(self, folder: str) -> None:
        """Have the launcher bring the newest checkpoint into a folder of this host.

        Raises:
            CoordinatorLostError: the launcher went away while waiting.
        """
        with self._changed:
            before = self._checkpoints_brought
        self.send(messages.CheckpointWanted(folder))
        with self._changed:
            self._changed.wait_for(lambda: self._checkpoints_brought > before or self._lost)
            if self._checkpoints_brought == before:
                raise CoordinatorLostError(self._address, self._lost or "connection closed")

    def close(self) -> None:
        """End the conversation on purpose."""
        self._closing = True
        self._socket.close()

    def _read(self) -> None:
        try:
            with self._socket.makefile("rb") as lines:
                for line in lines:
                    with contextlib.suppress(UnknownMessageError):  # of a later version
                        self._receive(decode(line))
            reason = "connection closed"
        except (OSError, MessageError) as error:  # it may have died in the middle of a line
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a defect: nobody else reads, so it must not go unnoticed
            traceback.print_exc()
            reason = f"{type(error).__name__}: {error}"
        if not self._closing:
            self._note_loss(reason)
            self._end_orphan()

    def _receive(self, message: Message) -> None:
        with self._changed:
            callback = self._take(message)
            self._changed.notify_all()
        if callback is not None:
            callback()

    def _take(self, message: Message) -> Callable[[], None] | None:
        """Note what a message says; returns what to call, without the lock."""
        match message:
            case messages.Stop(generation) if generation > self.wanted_generation:
                self.wanted_generation = generation
                return partial(self.on_stop, generation)
            case messages.Assign():
                self._assignment = message
            case messages.Leave(saves):
                self._leave, self.must_save = True, saves
            case messages.CheckpointBrought():
                self._checkpoints_brought += 1
            case messages.Cut(generation):
                return partial(self.on_cut, generation)
            case messages.End(has_grace=True):
                preemption.end()
            case messages.End():
                os._exit(ENDED)
        return None

    def _note_loss(self, reason: str) -> None:
        with self._changed:
            self._lost = self._lost or reason
            self._changed.notify_all()

    def _end_orphan(self) -> None:
        """End this worker, which nobody is left to watch or stop."""
        if preemption.is_listening():  # the script has no end of its own to SIGTERM
            os._exit(ENDED)
        threading.Timer(ORPHAN_GRACE, os._exit, args=(1,)).start()
        os.kill(os.getpid(), signal.SIGTERM)


def _ignore(generation: int) -> None:
    pass
