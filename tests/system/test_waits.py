"""Waits of docs/explanation/waits.md that need real processes; most others have tests beside their code."""

import queue
import socket
import subprocess
import sys
from collections.abc import Callable

import pytest

from edt_hvd.errors import CoordinatorLostError
from edt_hvd.world.control import Launcher
from edt_hvd.world.horovodrun.horovod_driver import HorovodDriver
from edt_launch.launcher.control import ControlServer
from edt_messages import messages
from started import started

PEER = """
import os, signal, socket, sys, time
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    connection, _ = server.accept()
    connection.recv(65536)
    if sys.argv[1].startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    time.sleep(600 if sys.argv[1] == "silent" else 0)
"""
"""Accepts one connection, reads once, and is closed, silent, killed or stopped."""


@pytest.fixture(autouse=True)
def outliving(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process does not end with its launcher, as workers do."""
    monkeypatch.setattr(Launcher, "_end_orphan", lambda _: None)


def of_launcher(address: str) -> None:
    launcher = Launcher(address, "token", 0)
    launcher.connect()
    try:
        launcher.wait_for_assignment(progress=0)
    finally:
        launcher.close()


def of_driver(address: str) -> None:
    HorovodDriver(address, timeout=0.2).get("scope", "key")


def assigned_by_driver(address: str) -> None:
    HorovodDriver(address, timeout=0.2).next_assignment("host", 0)


CASES = [
    *((of_launcher, how) for how in ("closed", "SIGKILL")),
    *((of_driver, how) for how in ("closed", "SIGKILL", "SIGSTOP", "silent")),
    (assigned_by_driver, "SIGSTOP"),
]


@pytest.mark.parametrize("ask, how", CASES)
def test_a_worker_does_not_wait_for_who_is_gone_or_silent(ask: Callable[[str], None], how: str) -> None:
    with started([sys.executable, "-c", PEER, how], stdout=subprocess.PIPE, text=True) as process:
        address = f"127.0.0.1:{process.stdout.readline().strip()}"
        with pytest.raises(CoordinatorLostError):
            ask(address)


def test_both_ends_of_a_workers_connection_notice_a_silent_host() -> None:
    heard: queue.Queue[messages.Message] = queue.Queue()
    server = ControlServer("127.0.0.1", "token", lambda _, message: heard.put(message))
    launcher = Launcher(server.address, "token", 0)
    launcher.connect()
    assert isinstance(heard.get(timeout=120), messages.Hello)
    for end in (launcher._socket, server._connections[0]):
        assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000
    launcher.close()
    server.close()
