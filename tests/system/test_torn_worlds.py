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
    "OMP_NUM_THREADS": "1",
}


class Store(Rendezvous):
    """The store of a world, of which a process may be stopped on the way."""

    def __init__(self, stopped: "subprocess.Popen[str] | None") -> None:
        self._stopped = stopped
        super().__init__("127.0.0.1", TOKEN, {})

    def _answer(self, connection: Any, request: Any, body: bytes) -> None:
        if self._stopped is not None and request.method == "PUT" and request.path.endswith("/1"):
            self._stopped.send_signal(signal.SIGSTOP)
        super()._answer(connection, request, body)


class Pair:
    """Two processes of torn.py, which form one world after the other."""

    def __init__(self, what: str, settings: dict[str, str]) -> None:
        self.rendezvous: list[Rendezvous] = []
        self.ranks = [
            subprocess.Popen(
                [sys.executable, PROGRAMS / "torn.py", what, str(rank)],
                env=os.environ | SETTINGS | settings,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for rank in (0, 1)
        ]

    def form(self, is_stopping: bool = False) -> None:
        """Form a world; with `is_stopping`, rank 1 is stopped when it has put down its first address."""
        stopped = self.ranks[1] if is_stopping else None
        self.rendezvous.append(Store(stopped))
        for process in self.ranks:
            assert process.stdin is not None
            print(self.rendezvous[-1].port, file=process.stdin, flush=True)

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

    def abort(self) -> None:
        """Have rank 0 abort what it waits for."""
        assert self.ranks[0].stdin is not None
        print("abort", file=self.ranks[0].stdin, flush=True)


@contextmanager
def pair(what: str, is_stopping: bool = False, **settings: str) -> Iterator[Pair]:
    torn = Pair(what, settings)
    try:
        torn.form(is_stopping)
        yield torn
    finally:
        torn.end()


def test_a_message_out_of_place_is_an_error_and_not_the_end_of_the_process() -> None:
    with pair("garbage") as torn:
        assert torn.said(0) == "an error"


@pytest.mark.full
def test_who_waits_for_the_rest_of_a_message_is_told_that_none_comes() -> None:
    with pair("half") as torn:
        assert torn.said(0) == "half"
        torn.ranks[1].send_signal(signal.SIGKILL)
        assert torn.said(0) == "an error"


@pytest.mark.full
def test_numbers_of_one_operation_are_never_taken_for_those_of_another() -> None:
    apart = {"HOROVOD_FUSION_THRESHOLD": "0", "HOROVOD_DISABLE_GROUP_FUSION": "1"}
    with pair("skipped", **apart) as torn:
        assert [torn.said(rank) for rank in (0, 1)] == ["an error"] * 2


@pytest.mark.full
def test_what_is_enqueued_while_a_world_breaks_is_answered() -> None:
    with pair("refused") as torn:
        for _ in range(10):
            assert (torn.said(0), torn.said(1)) == ("all answered", "cut")
            torn.form()


def test_who_waits_for_a_member_that_is_stopped_can_abort() -> None:
    with pair("stopped") as torn:
        assert torn.said(0) == "together"
        torn.ranks[1].send_signal(signal.SIGSTOP)
        torn.abort()
        assert torn.said(0) == "an error"


def test_who_forms_a_world_with_a_member_that_is_stopped_can_abort() -> None:
    with pair("unformed", is_stopping=True) as torn:
        os.waitpid(torn.ranks[1].pid, os.WUNTRACED)
        torn.abort()
        assert torn.said(0) == "an error"
