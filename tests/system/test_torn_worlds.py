"""What Horovod and Gloo, with the patches in native/horovod, make of a world that goes wrong."""

import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import pytest

from edt_launch.worlds.gloo_store import Rendezvous
from harness import POLL, PROGRAMS
from programs import torn

TOKEN = "of-the-job"

SETTINGS = {
    "HOROVOD_CONTROLLER": "gloo",
    "HOROVOD_CPU_OPERATIONS": "gloo",
    "HOROVOD_GLOO_RENDEZVOUS_ADDR": "127.0.0.1",
    "HOROVOD_GLOO_IFACE": "lo",
    "HOROVOD_RENDEZVOUS_TOKEN": TOKEN,
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "600",  # nobody is helped by it
    "HOROVOD_SIZE": "2",
    "HOROVOD_LOCAL_SIZE": "2",
    "HOROVOD_CROSS_RANK": "0",
    "HOROVOD_CROSS_SIZE": "1",
    "HOROVOD_CYCLE_TIME": "5",  # both are fixed: later worlds must leave them alone
    "HOROVOD_FUSION_THRESHOLD": "0",
    "HOROVOD_DISABLE_GROUP_FUSION": "1",
}


PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload([torn.__name__])


class Store(Rendezvous):
    """The store of a world, of which a process may be stopped on the way."""

    def __init__(self, stopped: int, stops_at: int) -> None:
        self._stopped = stopped
        self._left = stops_at
        super().__init__("127.0.0.1", TOKEN, {})

    def _answer(self, connection: Any, request: Any, body: bytes) -> None:
        if request.method == "PUT" and request.path.endswith("/1"):
            self._left -= 1
            if self._left == 0:
                os.kill(self._stopped, signal.SIGSTOP)
        super()._answer(connection, request, body)


class Pair:
    """Two processes of torn.py, which form one world after the other."""

    def __init__(self) -> None:
        self.rendezvous: list[Rendezvous] = []
        pipes = [PROCESSES.Pipe() for _ in range(2)]
        self._connections = [ours for ours, _ in pipes]
        self._processes = [
            PROCESSES.Process(target=torn.main, args=(str(rank), SETTINGS, theirs), daemon=True)
            for rank, (_, theirs) in enumerate(pipes)
        ]
        for process, (_, theirs) in zip(self._processes, pipes, strict=True):
            process.start()
            theirs.close()

    def form(self, what: str, stops_at: int = 0) -> None:
        """Form a world; rank 1 is stopped when it has put down so many addresses, if any."""
        self.rendezvous.append(Store(self.pid(1), stops_at))
        for rank in (0, 1):
            self.tell(rank, f"{what} {self.rendezvous[-1].port}")

    def pid(self, rank: int) -> int:
        pid = self._processes[rank].pid
        assert pid is not None
        return pid

    def tell(self, rank: int, message: str) -> None:
        self._connections[rank].send(message)

    def said(self, rank: int) -> str:
        """What it says next."""
        return str(self._connections[rank].recv())

    def end(self) -> None:
        for process, connection in zip(self._processes, self._connections, strict=True):
            process.kill()
            process.join()
            connection.close()
        for rendezvous in self.rendezvous:
            rendezvous.close()


@pytest.fixture(autouse=True)
def _prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.11 gives the process that forks the others no path of ours."""
    monkeypatch.setenv("PYTHONPATH", str(PROGRAMS.parent), prepend=":")


@contextmanager
def pair() -> Iterator[Pair]:
    both = Pair()
    try:
        yield both
    finally:
        both.end()


def test_who_waits_for_others_that_go_wrong_gets_an_error_and_lives() -> None:
    """After a message out of place, an operation that a member has left, and members that are stopped."""
    with pair() as both:
        both.form("garbage")
        assert both.said(0) == "an error"
        both.tell(1, "go on")
        assert both.said(1) == "woken"
        both.form("skipped")
        assert [both.said(rank) for rank in (0, 1)] == ["an error"] * 2
        both.form("refused")
        assert (both.said(0), both.said(1)) == ("all answered", "cut")
        both.form("stopped")
        assert both.said(0) == "together"
        os.kill(both.pid(1), signal.SIGSTOP)
        both.tell(0, "abort")
        assert both.said(0) == "an error"


@pytest.mark.parametrize("addresses", [1, pytest.param(2, marks=pytest.mark.full), 4])
def test_who_forms_a_world_with_a_member_that_is_stopped_can_abort(addresses: int) -> None:
    """Once is enough, wherever it waits, as the launcher voids the store first."""
    with pair() as both:
        both.form("unformed", stops_at=addresses)
        while psutil.Process(both.pid(1)).status() != psutil.STATUS_STOPPED:
            time.sleep(POLL)
        both.rendezvous[-1].void()
        both.tell(0, "abort")
        assert both.said(0) == "an error"


@pytest.mark.full
def test_what_is_enqueued_while_a_world_breaks_is_answered_and_half_a_message_is_an_error() -> None:
    with pair() as both:
        for _ in range(10):
            both.form("refused")
            assert (both.said(0), both.said(1)) == ("all answered", "cut")
        both.form("half")
        assert both.said(0) == "half"
        os.kill(both.pid(1), signal.SIGKILL)
        assert both.said(0) == "an error"
