"""What Horovod and Gloo, with the patches in native/horovod, make of a world that goes wrong."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from edt_launch.worlds.gloo_store import Rendezvous
from harness import PROGRAMS

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


class Store(Rendezvous):
    """The store of a world, of which a process may be stopped on the way."""

    def __init__(self, stopped: "subprocess.Popen[str]", stops_at: int) -> None:
        self._stopped = stopped
        self._left = stops_at
        super().__init__("127.0.0.1", TOKEN, {})

    def _answer(self, connection: Any, request: Any, body: bytes) -> None:
        if request.method == "PUT" and request.path.endswith("/1"):
            self._left -= 1
            if self._left == 0:
                self._stopped.send_signal(signal.SIGSTOP)
        super()._answer(connection, request, body)


class Pair:
    """Two processes of torn.py, which form one world after the other."""

    def __init__(self) -> None:
        self.rendezvous: list[Rendezvous] = []
        self.ranks = [
            subprocess.Popen(
                [sys.executable, PROGRAMS / "torn.py", str(rank)],
                env=os.environ | SETTINGS,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in (0, 1)
        ]

    def form(self, what: str, stops_at: int = 0) -> None:
        """Form a world; rank 1 is stopped when it has put down so many addresses, if any."""
        self.rendezvous.append(Store(self.ranks[1], stops_at))
        for rank in (0, 1):
            self.tell(rank, f"{what} {self.rendezvous[-1].port}")

    def tell(self, rank: int, line: str) -> None:
        stdin = self.ranks[rank].stdin
        assert stdin is not None
        print(line, file=stdin, flush=True)

    def said(self, rank: int) -> str:
        """The next line that it prints; empty if it has ended."""
        stdout = self.ranks[rank].stdout
        assert stdout is not None
        return stdout.readline().strip()

    def end(self) -> None:
        for process in self.ranks:
            process.kill()
            process.communicate()
        for rendezvous in self.rendezvous:
            rendezvous.close()


@contextmanager
def pair() -> Iterator[Pair]:
    torn = Pair()
    try:
        yield torn
    finally:
        torn.end()


def test_who_waits_for_others_that_go_wrong_gets_an_error_and_lives() -> None:
    """After a message out of place, an operation that a member has left, and members that are stopped."""
    with pair() as torn:
        torn.form("garbage")
        assert torn.said(0) == "an error"
        torn.tell(1, "go on")
        assert torn.said(1) == "woken"
        torn.form("skipped")
        assert [torn.said(rank) for rank in (0, 1)] == ["an error"] * 2
        torn.form("refused")
        assert (torn.said(0), torn.said(1)) == ("all answered", "cut")
        torn.form("stopped")
        assert torn.said(0) == "together"
        torn.ranks[1].send_signal(signal.SIGSTOP)
        torn.tell(0, "abort")
        assert torn.said(0) == "an error"


@pytest.mark.parametrize("addresses", [1, pytest.param(2, marks=pytest.mark.full), 4])
def test_who_forms_a_world_with_a_member_that_is_stopped_can_abort(addresses: int) -> None:
    """Once is enough, wherever it waits, as the launcher voids the store first."""
    with pair() as torn:
        torn.form("unformed", stops_at=addresses)
        os.waitpid(torn.ranks[1].pid, os.WUNTRACED)
        torn.rendezvous[-1].void()
        torn.tell(0, "abort")
        assert torn.said(0) == "an error"


@pytest.mark.full
def test_what_is_enqueued_while_a_world_breaks_is_answered_and_half_a_message_is_an_error() -> None:
    with pair() as torn:
        for _ in range(10):
            torn.form("refused")
            assert (torn.said(0), torn.said(1)) == ("all answered", "cut")
        torn.form("half")
        assert torn.said(0) == "half"
        torn.ranks[1].send_signal(signal.SIGKILL)
        assert torn.said(0) == "an error"
