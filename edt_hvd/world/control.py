"""This worker's side of the conversation with the launcher: JSON objects, one a line, over TCP.

To the launcher::

    hello     token worker pid          once, first
    door      progress                  outside any world, waiting for an assignment
    standby   waited processor private  once, behind the first door: seconds, processor seconds, own bytes
    synced                              this worker has the state of its world
    done                                the elastic function has returned
    leaving   reason                    this worker has been told from outside to give up its slot
    beat      step stage seconds idle stages    once a second: what the training thread is doing, see `stages`
    progress  step epoch size values    now and then, from the coordinator
    resumed   generation from to pause phases    after the first step on a new world, from the coordinator
    restored  path step                 training goes on from a checkpoint
    checkpoint_skipped  path reason     a damaged one, for an older one
    checkpointed  step path bytes seconds last again    one has been written; `last`: after training had
                                        ended, `again`: after one could not be written
    checkpoint_failed  reason           one could not be written; once for each reason until one could

From the launcher::

    stop      generation                a newer membership is ready: stop after the step all workers agree on
    assign    generation rank size local_rank local_size cross_rank cross_size port
    leave     saves                     not needed any more: save the state or not, and exit 0
    cut       generation                the world of that generation has lost a member
    end                                 the job is being ended: die now

`stop` only ever raises the wanted generation, so a message that comes late or twice changes nothing. `cut`
says of a generation that it is broken, which stays true.
"""

import json
import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Protocol

from edt_hvd.errors import CoordinatorLostError
from edt_hvd.world import preemption

CONNECT_TIMEOUT = 30.0
"""Seconds to wait for the launcher to accept the connection."""

ENDED = 143
"""Exit code of a worker that was told to end: that of a process ended by SIGTERM."""

ORPHAN_GRACE = 5.0
"""Seconds that a worker whose launcher is gone has for an orderly end."""


@dataclass(frozen=True)
class Assignment:
    """This worker's place in the world of one generation."""

    generation: int
    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int
    port: int

    @classmethod
    def from_message(cls, message: dict[str, Any]) -> "Assignment":
        """The assignment in an `assign` message."""
        return cls(**{field.name: int(message[field.name]) for field in fields(cls)})


class EventSink(Protocol):
    """Where a worker reports to."""

    def send(self, message_type: str, /, **content: Any) -> None:
        """Report something; whoever is told may be gone."""


class Launcher:
    """The connection to the launcher. Thread-safe; one reader thread, started by `connect`."""

    def __init__(self, address: str, token: str, worker: int) -> None:
        self._address = address
        self._token = token
        self._worker = worker
        self._send_lock = threading.Lock()
        self._changed = threading.Condition()
        self._assignment: Assignment | None = None
        self._leave = False
        self.must_save = False
        """Whether this worker, which is to leave, is the last that has the state."""
        self._lost: str | None = None
        self._closing = False
        self._wanted_generation = 0
        self._on_stop: list[Callable[[int], None]] = []
        self._on_cut: list[Callable[[int], None]] = []

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
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.send("hello", token=self._token, worker=self._worker, pid=os.getpid())
        threading.Thread(target=self._read, name="edt-launcher", daemon=True).start()

    def send(self, message_type: str, /, **content: Any) -> None:
        """Send one message; a launcher that is gone is noticed by the reader, not here."""
        line = json.dumps({"type": message_type, **content}) + "\n"
        with self._send_lock:
            try:
                self._socket.sendall(line.encode())
            except OSError as error:
                self._note_loss(str(error))

    @property
    def wanted_generation(self) -> int:
        """The newest generation the launcher has announced."""
        return self._wanted_generation

    def wait_until_wanted(self, generation: int) -> None:
        """Wait until the launcher announces a generation of at least that number, or is lost."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted_generation >= generation or self._lost)

    def on_stop(self, callback: Callable[[int], None]) -> None:
        """Call `callback(generation)` from the reader thread whenever a newer generation is announced."""
        self._on_stop.append(callback)

    def on_cut(self, callback: Callable[[int], None]) -> None:
        """Call `callback(generation)` from the reader thread when the world of a generation is broken."""
        self._on_cut.append(callback)

    @property
    def is_lost(self) -> bool:
        """Whether the conversation has ended, on purpose or not."""
        return self._closing or self._lost is not None

    def wait_for_assignment(self, progress: int) -> Assignment | None:
        """Announce that this worker is outside any world and wait for its next place.

        Returns:
            The assignment, or None when the worker is to leave.

        Raises:
            CoordinatorLostError: the launcher went away while waiting.
        """
        self.send("door", progress=progress)
        with self._changed:
            self._changed.wait_for(lambda: self._assignment or self._leave or self._lost)
            if self._leave:
                return None
            if self._assignment is None:
                raise CoordinatorLostError(self._address, self._lost or "connection closed")
            assignment, self._assignment = self._assignment, None
            return assignment

    def close(self) -> None:
        """End the conversation on purpose."""
        self._closing = True
        self._socket.close()

    def _read(self) -> None:
        try:
            with self._socket.makefile("r", encoding="utf-8") as lines:
                for line in lines:
                    self._receive(json.loads(line))
            reason = "connection closed"
        except OSError as error:
            reason = str(error)
        except ValueError as error:  # the launcher died in the middle of a line
            reason = f"its last message is no JSON: {error}"
        if not self._closing:
            self._note_loss(reason)
            self._end_orphan()

    def _receive(self, message: dict[str, Any]) -> None:
        callbacks: list[Callable[[int], None]] = []
        with self._changed:
            if message["type"] == "stop":
                if message["generation"] > self._wanted_generation:
                    self._wanted_generation = message["generation"]
                    callbacks = list(self._on_stop)
            elif message["type"] == "assign":
                self._assignment = Assignment.from_message(message)
            elif message["type"] == "leave":
                self._leave, self.must_save = True, bool(message.get("saves"))
            elif message["type"] == "cut":
                callbacks = list(self._on_cut)
            elif message["type"] == "end":
                os._exit(ENDED)
            self._changed.notify_all()
        for callback in callbacks:
            callback(message["generation"])

    def _note_loss(self, reason: str) -> None:
        with self._changed:
            self._lost = self._lost or reason
            self._changed.notify_all()

    def _end_orphan(self) -> None:
        """Nobody is left to start, watch or stop this worker: it must not go on alone."""
        if preemption.is_listening():  # the script has no end of its own to SIGTERM
            os._exit(ENDED)
        threading.Timer(ORPHAN_GRACE, os._exit, args=(1,)).start()
        os.kill(os.getpid(), signal.SIGTERM)
