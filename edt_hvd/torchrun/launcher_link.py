"""This worker's connection to `edt torchrun`; `edt_messages.messages` has the messages."""

import contextlib
import os
import signal
import socket
import threading

from edt_messages import messages
from edt_messages.codec import UnknownMessageError
from edt_messages.keepalive import end_with_peer
from edt_messages.messages import Message, decode, encode

CONNECT_TIMEOUT = 30.0
"""Seconds to wait for the launcher to accept the connection."""


class LauncherLink:
    """A connection with one reader thread. Without a launcher any more, its agent ends this process.

    Raises:
        OSError: nobody answers at the address.
    """

    def __init__(self, address: str, token: str, worker: int) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=CONNECT_TIMEOUT)
        self._socket.settimeout(None)
        end_with_peer(self._socket)
        self._lock = threading.Lock()
        self._changed = threading.Condition()
        self._admissions = 0
        self.is_due = False
        """Whether a resize waits for a checkpoint of the program."""
        self.step = 0
        """Optimizer steps of the job before this worker was admitted."""
        self.send(messages.Hello(token, worker, os.getpid()))
        self._reader = threading.Thread(target=self._read, name="edt-launcher", daemon=True)
        self._reader.start()

    def send(self, message: Message) -> None:
        """Send a message, if there is still somebody to read it."""
        with self._lock, contextlib.suppress(OSError):
            self._socket.sendall(encode(message))

    def ask(self, message: Message) -> None:
        """Send a message, and wait until this worker is admitted, or may go on."""
        with self._changed:
            before = self._admissions
            self.send(message)
            self._changed.wait_for(lambda: self._admissions > before)

    def close(self) -> None:
        """End the conversation."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._reader.join()
        self._socket.close()

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._socket.makefile("rb") as lines:
            for line in lines:
                with contextlib.suppress(UnknownMessageError):  # of a later version
                    self._take(decode(line))

    def _take(self, message: Message) -> None:
        match message:
            case messages.Stop():
                self.is_due = True
            case messages.Admit(step=step):
                with self._changed:
                    self.is_due, self.step = False, step
                    self._admissions += 1
                    self._changed.notify_all()
            case messages.End():
                os.kill(os.getpid(), signal.SIGTERM)
