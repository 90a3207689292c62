"""The warm server's loop: it forks a worker for every request, and reports how each ended.

`edt_messages.forking` has the messages.
"""

import contextlib
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from edt_hvd.warm import worker
from edt_messages.forking import MAX_LINE, Exited, Fork, Forked, Message, Ready, decode, encode

IDLE_LIMIT = 60.0
"""Seconds that a server without workers stays; the next worker starts another."""

REQUEST_TIMEOUT = 10.0
"""Seconds that a request may take to arrive once its sender has connected."""

_STANDARD = 3  # input, output, error

_T = TypeVar("_T")


@dataclass
class ForkRequest:
    """A request for a worker, with the descriptors that came with it."""

    request: Fork
    client: socket.socket
    standard: list[int]
    lifeline: int

    def close(self) -> None:
        """Close the descriptors, but not the connection."""
        for descriptor in (*self.standard, self.lifeline):
            os.close(descriptor)


@dataclass
class Server:
    """Serves requests for workers.

    Attributes:
        channel: brings a connection for each worker, and ends with the agent.
    """

    channel: socket.socket
    _agent_gone: bool = False
    _workers: dict[int, socket.socket] = field(default_factory=dict)
    _idle_since: float = 0.0

    def serve(self) -> tuple[Fork, int]:
        """Serve until nobody needs this server; ends the process then.

        Returns:
            Only in a forked worker: its request, and the descriptor of its lifeline.
        """
        self._idle_since = time.monotonic()
        with selectors.DefaultSelector() as selector:
            wakeup, woken = socket.socketpair()
            woken.setblocking(False)
            wakeup.setblocking(False)
            for readable in (self.channel, wakeup):
                selector.register(readable, selectors.EVENT_READ)
            signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
            signal.signal(signal.SIGCHLD, lambda *_: None)
            while True:
                wanted = self._next_request(selector, wakeup)
                if wanted is not None and self._fork(wanted):
                    break
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.set_wakeup_fd(-1)
        self._let_go(wanted.client, wakeup, woken)
        worker.become(wanted.request, wanted.standard, wanted.lifeline)
        return wanted.request, wanted.lifeline

    def _next_request(self, selector: selectors.BaseSelector, wakeup: socket.socket) -> ForkRequest | None:
        """Wait until something happens; a request for a worker, if it was one."""
        idle = time.monotonic() - self._idle_since
        if reason := reason_to_end(len(self._workers), idle, self._agent_gone):
            _end(reason)
        timeout = None if self._workers else IDLE_LIMIT - idle
        ready = {key.fileobj for key, _ in selector.select(timeout)}
        if wakeup in ready:
            with contextlib.suppress(BlockingIOError):
                wakeup.recv(4096)
        self._reap()
        return self._accept(selector) if self.channel in ready else None

    def _accept(self, selector: selectors.BaseSelector) -> ForkRequest | None:
        """The agent's next request; None when the agent has gone, or the request is incomplete."""
        try:
            _, descriptors, _, _ = socket.recv_fds(self.channel, 1, 1, socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            descriptors = []
        if not descriptors:
            selector.unregister(self.channel)
            self.channel.close()
            self._agent_gone = True
            return None
        client = socket.socket(fileno=descriptors[0])
        wanted = self._fork_request(client)
        if wanted is None:
            client.close()
        return wanted

    def _fork_request(self, client: socket.socket) -> ForkRequest | None:
        request = _receive(client, _request)
        if request is None:
            return None
        _send(client, Ready())
        descriptors = _receive(client, _descriptors)
        if descriptors is None:
            return None
        return ForkRequest(request, client, descriptors[:_STANDARD], descriptors[_STANDARD])

    def _fork(self, wanted: ForkRequest) -> bool:
        """Fork the worker; True in the worker."""
        pid = os.fork()
        if pid == 0:
            return True
        wanted.close()
        self._workers[pid] = wanted.client
        _send(wanted.client, Forked(pid))
        return False

    def _let_go(self, *others: socket.socket) -> None:
        """In a worker: close what is the server's."""
        for connection in (self.channel, *self._workers.values(), *others):
            connection.close()

    def _reap(self) -> None:
        for pid in list(self._workers):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                client = self._workers.pop(pid)
                _send(client, Exited(status))
                client.close()
                self._idle_since = time.monotonic()


def reason_to_end(workers: int, idle: float, agent_gone: bool) -> str | None:
    """Why a server is not needed any more, `idle` seconds after its last worker ended; None if it is."""
    if workers:  # they end by themselves when the agent has gone
        return None
    if agent_gone:
        return "the agent has gone"
    return f"no worker for {IDLE_LIMIT:g} s" if idle >= IDLE_LIMIT else None


def _receive(client: socket.socket, read: Callable[[socket.socket], _T]) -> _T | None:
    """What `read` reads from a client; None if it does not send that in time."""
    client.settimeout(REQUEST_TIMEOUT)
    try:
        return read(client)
    except (OSError, ValueError) as error:
        print(f"no request: {error!r}", flush=True)
        return None
    finally:
        client.settimeout(None)


def _request(client: socket.socket) -> Fork:
    with client.makefile("rb") as lines:  # nothing is sent after the request before it is answered
        message = decode(lines.readline(MAX_LINE + 1))
    if not isinstance(message, Fork):
        raise ValueError(f"{message} is no request")
    return message


def _descriptors(client: socket.socket) -> list[int]:
    _, descriptors, _, _ = socket.recv_fds(client, 1, _STANDARD + 1, socket.MSG_CMSG_CLOEXEC)
    if len(descriptors) != _STANDARD + 1:
        for descriptor in descriptors:
            os.close(descriptor)
        raise ValueError(f"{len(descriptors)} descriptors are no worker's")
    return descriptors


def _send(client: socket.socket, message: Message) -> None:
    """Send a message; whoever has gone needs it no more."""
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        client.sendall(encode(message))


def _end(reason: str) -> NoReturn:
    print(f"ended: {reason}", flush=True)
    os._exit(0)
