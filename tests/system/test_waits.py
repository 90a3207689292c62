"""Who waits for whom over a connection, and what ends the wait: the rows of the table in docs/waits.md.

The peers are real processes and sockets: stopped, killed, closed, or silent. Agents that are silent are in
`edt_launch/launcher/test_agents.py`.
"""

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edt_hvd.errors import CoordinatorLostError
from edt_hvd.world.control import Launcher
from edt_hvd.world.horovod_driver import HorovodDriver
from edt_launch.launcher.control import ControlServer
from edt_messages import messages
from edt_messages.keepalive import end_with_peer
from running_agent import RunningAgent, until
from started import gone, started

PEER = """
import socket, sys, time
with socket.create_server(("127.0.0.1", 0)) as server:
    print(server.getsockname()[1], flush=True)
    connection, _ = server.accept()
    print(connection.recv(65536), flush=True)
    {then}
"""


@contextlib.contextmanager
def peer(then: str) -> Iterator[tuple[subprocess.Popen[Any], int]]:
    """A process that accepts one connection, reads once, and does `then`; with its port."""
    with started(
        [sys.executable, "-c", PEER.format(then=then)], stdout=subprocess.PIPE, text=True
    ) as process:
        yield process, int(process.stdout.readline())


@pytest.fixture
def outliving(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process does not end with its launcher, as workers do."""
    monkeypatch.setattr(Launcher, "_end_orphan", lambda _: None)


ENDS = {
    "closed": ("pass", None),
    "killed": ("time.sleep(600)", signal.SIGKILL),
}


@pytest.mark.parametrize("how", ENDS)
@pytest.mark.usefixtures("outliving")
def test_a_worker_does_not_wait_for_a_launcher_that_is_gone(how: str) -> None:
    then, number = ENDS[how]
    with peer(then) as (process, port):
        launcher = Launcher(f"127.0.0.1:{port}", "token", 0)
        launcher.connect()
        process.stdout.readline()
        if number is not None:
            process.send_signal(number)
        with pytest.raises(CoordinatorLostError):
            launcher.wait_for_assignment(progress=0)
        launcher.wait_until_wanted(1)
        launcher.close()


@pytest.mark.parametrize("how", [*ENDS, "stopped", "silent"])
@pytest.mark.parametrize("ask", [lambda d: d.next_assignment("h", 0), lambda d: d.get("a", "b")])
def test_a_worker_does_not_wait_for_a_driver_of_horovods_that_is_gone_or_silent(
    how: str, ask: Callable[[HorovodDriver], object]
) -> None:
    then, number = ENDS.get(how, ("time.sleep(600)", signal.SIGSTOP if how == "stopped" else None))
    with peer(then) as (process, port):
        if number is not None:
            process.send_signal(number)
        with pytest.raises(CoordinatorLostError):
            ask(HorovodDriver(f"127.0.0.1:{port}", timeout=0.2))


def test_a_peer_that_takes_in_nothing_ends_a_send() -> None:
    with peer("time.sleep(600)") as (_, port), socket.create_connection(("127.0.0.1", port)) as one:
        end_with_peer(one, timeout=1)
        with pytest.raises(OSError, match="timed out"):
            one.sendall(bytes(2**26))


@pytest.mark.usefixtures("outliving")
def test_both_ends_of_a_workers_connection_notice_a_silent_host() -> None:
    heard: queue.Queue[messages.Message] = queue.Queue()
    server = ControlServer("127.0.0.1", "token", lambda _, message: heard.put(message))
    launcher = Launcher(server.address, "token", 0)
    launcher.connect()
    assert isinstance(heard.get(timeout=30), messages.Hello)
    for end in (launcher._socket, server._connections[0]):
        assert end.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert end.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 60_000
    launcher.close()
    server.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel ends the workers")
@pytest.mark.parametrize("who", ["launcher", "agent", "worker"])
def test_workers_and_agents_do_not_outlive_each_other(tmp_path: Path, who: str) -> None:
    """A launcher that closes its end, an agent that is killed, a worker that is stopped and then killed."""
    program = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
    agent = RunningAgent(program, tmp_path, forks=False)
    agent.start()
    agent.line()
    worker = agent.pids[0]
    match who:
        case "launcher":
            agent.hang_up()
        case "agent":
            agent.process.kill()
        case "worker":
            os.kill(worker, signal.SIGSTOP)
            agent.kill()
            assert agent.ended()[0] == -signal.SIGKILL
    until(lambda: gone(worker))
    agent.close()
