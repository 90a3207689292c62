"""The driver's sockets, and what it makes of the workers' messages."""

import queue
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.request import urlopen

import pytest

from edt_hvd.world.control import Launcher
from edt_launch.agent import processes
from edt_launch.errors import StartError
from edt_launch.launcher import driver as driver_module
from edt_launch.launcher.driver import STAND_IN_GRACE, Driver
from edt_launch.launcher.rendezvous import Rendezvous
from edt_launch.launcher.shown import Shown, discover
from edt_launch.launcher.watchdog import Beat, Times
from edt_launch.membership.protocol import AtDoor, Leaving


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Driver]:
    monkeypatch.setenv("EDT_HANG_TIMEOUT", "2.5")
    monkeypatch.setenv("EDT_READY_TIMEOUT", "40")
    one = Driver("127.0.0.1", SimpleNamespace(_discovery_script="none"), 1, 2, None, None)
    yield one
    one.stop()


@pytest.fixture
def worker(driver: Driver) -> Iterator[Launcher]:
    one = Launcher(driver._server.address, driver._token, 7)
    one._end_orphan = lambda: None  # type: ignore[method-assign]  # this process is the test
    one.connect()
    yield one
    one.close()


def test_a_discovery_that_keeps_failing_ends_the_wait_for_slots(
    driver: Driver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(driver_module, "WATCH_INTERVAL", 0)
    monkeypatch.setattr(driver_module, "FAILURES", 3)
    monkeypatch.delenv("EDT_ALLOCATION", raising=False)
    driver._script = str(tmp_path / "script")
    texts = iter(["exit 1", "exit 1", "echo", "exit 2", "exit 2", "echo no >&2; exit 2", "echo here:1"])

    def script(found: str, complain: Callable[[str], None]) -> Shown:
        (tmp_path / "script").write_text(f"#!/bin/sh\n{next(texts)}\n")
        (tmp_path / "script").chmod(0o755)
        return discover(found, complain)

    monkeypatch.setattr(driver_module, "discover", script)
    with pytest.raises(StartError, match="host discovery failed with exit code 2: no"):
        driver.wait_for_available_slots(1)
    assert next(texts) == "echo here:1"


def test_a_worker_that_was_to_end_before_it_connected_is_told_when_it_does(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    exits: queue.Queue[int] = queue.Queue()
    monkeypatch.setattr("edt_hvd.world.control.os._exit", exits.put)
    driver._terminate(7, at_once=False)
    worker = Launcher(driver._server.address, driver._token, 7)
    worker._end_orphan = lambda: None  # type: ignore[method-assign]  # this process is the test
    worker.connect()
    assert exits.get(timeout=30) == 143
    worker.close()


def test_what_workers_say_becomes_events(driver: Driver, worker: Launcher) -> None:
    worker.send("beat", step=3, stage="loading", seconds=0.5, idle=0.25, stages={"loading": (4, 1.5)})
    worker.send("leaving", reason="spot")
    worker.send("door", progress=9)
    assert [driver._events.get(timeout=30) for _ in range(3)] == [
        Beat(7, 3, "loading", 0.5, {"loading": Times(4, 1.5)}, 0.25),
        Leaving(7, "spot"),
        AtDoor(7, 9),
    ]
    assert driver._watch.timeout == 2.5
    assert driver._state.limits.ready_timeout == 40.0


def test_a_broken_world_is_told_to_its_members_and_its_rendezvous_is_void(
    driver: Driver, worker: Launcher
) -> None:
    broken: queue.Queue[int] = queue.Queue()
    worker.on_cut(broken.put)
    worker.send("done")
    driver._events.get(timeout=30)
    rendezvous = Rendezvous("127.0.0.1", {"global/1": b"there"})
    driver._rendezvous.append(rendezvous)
    url = f"http://127.0.0.1:{rendezvous.port}/global/1"
    with urlopen(url) as answer:
        assert answer.read() == b"there"
    driver._cut((7, 8), 3)
    assert broken.get(timeout=30) == 3
    with urlopen(url) as answer:
        assert answer.read() == b"-1"


@pytest.mark.parametrize("is_there", [False, True])
def test_who_stands_for_a_worker_that_is_gone_ends_soon(
    driver: Driver, worker: Launcher, monkeypatch: pytest.MonkeyPatch, is_there: bool
) -> None:
    graces: queue.Queue[tuple[float, Callable[[], None]]] = queue.Queue()
    monkeypatch.setattr(driver_module, "_later", lambda *later: graces.put(later))
    found = {"EDT_TOKEN": driver._token} if is_there else {}
    monkeypatch.setattr(processes, "environment", lambda process: found)
    ended = driver._end_events[7] = threading.Event()
    worker.send("done")
    driver._events.get(timeout=30)
    worker._socket.shutdown(socket.SHUT_RDWR)
    grace, end = graces.get(timeout=30)
    assert grace == STAND_IN_GRACE
    assert not ended.is_set()
    end()
    assert ended.is_set() != is_there
