"""The driver's sockets, what it makes of messages of workers and agents, and what it says of lost workers."""

import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from edt_hvd.world.control import Launcher
from edt_launch.agent.protocol import Exited as ProcessEnded
from edt_launch.agent.protocol import Hello, Started
from edt_launch.core.errors import StartError
from edt_launch.core.history.event_codec import write
from edt_launch.launcher.driver import driver as driver_module
from edt_launch.launcher.driver import launched_workers
from edt_launch.launcher.driver.driver import Driver, DriverSettings
from edt_launch.launcher.hosts.host_events import CheckpointFetched, HostEvent, Lost
from edt_launch.launcher.program import Workers
from edt_launch.launcher.watchdog import Heartbeat, Times
from edt_launch.membership import protocol
from edt_launch.membership.members import WorldLimits
from edt_messages import messages
from edt_messages.messages import Message
from simulated_world import SimulatedWorld


class FakeAgents:
    """Agents that keep what they are told. Hosts whose name begins with "far" are elsewhere."""

    job = "no such job"

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.started: dict[int, tuple[str, dict[str, str]]] = {}
        self.killed: list[tuple[str, int]] = []
        self.refuses = False
        self.own_disks: set[str] = set()
        self.transfers: list[tuple[str, int, object]] = []

    def is_here(self, host: str) -> bool:
        return not host.startswith("far")

    def open(self, host: str) -> None:
        if self.refuses:
            raise StartError("no agent")
        self.opened.append(host)

    def start(self, host: str, worker: int, environment: dict[str, str], *_: object) -> None:
        if self.refuses:
            raise StartError("no agent")
        self.started[worker] = host, environment

    def has_own_disk(self, host: str) -> bool:
        return host in self.own_disks

    def fetch_checkpoint(self, host: str, worker: int, checkpointed: messages.Checkpointed) -> None:
        self.transfers.append((host, worker, checkpointed))

    def put_checkpoint(self, host: str, worker: int, folder: str) -> None:
        self.transfers.append((host, worker, folder))

    def kill(self, host: str, worker: int) -> None:
        self.killed.append((host, worker))


class Running:
    """A driver whose turns the test takes, with what it says."""

    def __init__(self, hosts: tuple[str, ...] = ("here", "here"), **settings: Any) -> None:
        self.agents = FakeAgents()
        self.world = SimulatedWorld()
        self.events: list[dict[str, Any]] = []
        self.told: list[tuple[int, str]] = []
        limits = WorldLimits(1, 2, ready_timeout=40.0)
        self.driver = Driver(
            DriverSettings(limits, Workers(["x"]), self.world, lambda hosts: "127.0.0.1", **settings),
            self.agents,  # type: ignore[arg-type]
            lambda event: self.events.append(write(event)),
            lambda worker, text: self.told.append((worker, text)),
        )
        self.desire(hosts)

    def desire(self, hosts: tuple[str, ...]) -> None:
        slots = tuple(protocol.Slot(host, index) for index, host in enumerate(hosts))
        self.driver.put(protocol.Desired(slots, 1))
        self.turn()

    def turn(self) -> None:
        """Take in one event."""
        self.driver._turn()

    def notify(self, host: str, happening: Any) -> None:
        self.driver.notify(HostEvent(host, happening))
        self.turn()
        if isinstance(happening, ProcessEnded):  # which counts after what is in the queue by then
            self.turn()

    def of(self, *kinds: str) -> list[tuple[str, int]]:
        return [(event["event"], event["worker"]) for event in self.events if event["event"] in kinds]

    def connect(self, number: int) -> Launcher:
        worker = Launcher(self.driver._server.at("127.0.0.1"), self.driver._token, number)
        worker._end_orphan = lambda: None  # type: ignore[method-assign]  # this process is the test
        worker.connect()
        return worker


@pytest.fixture
def running() -> Iterator[Running]:
    one = Running(hang_timeout=2.5)
    yield one
    one.driver._server.close()


@pytest.fixture
def far() -> Iterator[Running]:
    one = Running(("here", "far"))
    yield one
    one.driver._server.close()


@pytest.fixture
def worker(running: Running) -> Iterator[Launcher]:
    one = running.connect(1)
    yield one
    one.close()


def test_a_worker_that_was_to_end_before_it_connected_is_told_when_it_does(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    exits: queue.Queue[int] = queue.Queue()
    monkeypatch.setattr("edt_hvd.world.control.os._exit", exits.put)
    running.driver._terminate(1, at_once=False)
    assert running.agents.killed == [("here", 1)]
    worker = running.connect(1)
    assert exits.get(timeout=30) == 143
    worker.close()


def test_what_workers_say_becomes_events(running: Running, worker: Launcher) -> None:
    worker.send(messages.Heartbeat(3, "loading", 0.5, 0.25, {"loading": (4, 1.5)}))
    worker.send(messages.Leaving("spot"))
    worker.send(messages.CheckpointFailed(3))  # type: ignore[arg-type]  # it is not as it should be
    worker.send(messages.CheckpointFailed("full"))
    worker.send(messages.WorldFormed(1, 2))  # the launcher's to say
    worker.send(messages.Standby(1.0, 0.5, None))
    worker.send(messages.AtRendezvous(9))
    assert [running.driver._events.get(timeout=30) for _ in range(3)] == [
        Heartbeat(1, 3, "loading", 0.5, {"loading": Times(4, 1.5)}, 0.25),
        protocol.Leaving(1, "spot"),
        protocol.Ready(1, 9),
    ]
    said = running.events[4:]
    assert [event["event"] for event in said] == ["checkpoint_failed", "standby", "ready"]
    assert (said[0]["reason"], said[1]["worker"], said[2]["pid"]) == ("full", 1, os.getpid())
    assert running.driver._watch.timeout == 2.5


def test_what_a_worker_has_sent_counts_before_its_end(running: Running) -> None:
    running.driver._server.at("127.0.0.1")
    (server,) = running.driver._server._servers.values()
    heard, may_go_on, receive = threading.Event(), threading.Event(), server._receive

    def receive_late(worker: int, message: Message) -> None:
        heard.set()
        may_go_on.wait(30)
        receive(worker, message)

    server._receive = receive_late
    worker = running.connect(1)
    assert heard.wait(30)
    worker.send(messages.Done())
    worker.close()
    running.notify("here", ProcessEnded(1, 0))
    assert running.of("released") == []
    may_go_on.set()
    while not running.of("released"):
        running.turn()
    assert running.of("failed") == []


def test_what_a_worker_has_sent_counts_also_when_it_is_read_behind_the_report_of_its_end(
    running: Running,
) -> None:
    for worker in (0, 1):
        running.notify("here", Started(worker, 4711))
        running.driver._receive(worker, messages.AtRendezvous(0))
        running.turn()
    running.driver.notify(HostEvent("here", ProcessEnded(1, 0)))
    running.driver._receive(1, messages.Done())
    while not running.of("released"):
        running.turn()
    running.turn()
    assert running.of("failed") == []


def test_behind_a_cut_link_workers_are_lost_until_a_new_agent_has_swept_their_host(far: Running) -> None:
    far.notify("far", Started(1, 4711))
    far.notify("far", Lost(255, ("ssh: gone",)))
    assert far.of("released", "lost", "failed") == [("lost", 1), ("failed", 1)]
    (failed,) = [event for event in far.events if event["event"] == "failed"]
    assert failed["exit_code"] == 255
    assert far.told == [(1, "ssh: gone")]
    far.notify("here", Hello(1, 5))
    assert far.of("released") == []
    next_run = Running(("here", "far"), first_worker=2, given_up=far.driver.given_up)
    next_run.notify("far", Hello(1, 6))
    assert next_run.of("released") == [("released", 1)]
    next_run.driver._server.close()
    far.notify("far", Hello(1, 6))
    assert far.of("released") == [("released", 1)]


def test_devices_of_a_lost_host_are_free_when_twice_its_lease_has_passed(
    far: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    far.notify("far", Started(1, 4711))
    far.notify("far", Lost(255, gone_after=0.0))
    assert far.of("released", "lost") == [("lost", 1)]
    monkeypatch.setattr(launched_workers, "LEASE", 0.0)
    next_run = Running(("here",), first_worker=2, given_up=far.driver.given_up)
    far.notify("here", Hello(1, 5))  # any turn
    assert far.of("released") == [("released", 1)]
    next_run.turn()
    assert next_run.of("released") == [("released", 1)]
    next_run.driver._server.close()


def test_a_lost_host_has_an_agent_again_before_its_slots_are_used_again(
    far: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "RECONNECT_INTERVALS", {True: 0.0, False: 0.0})
    far.notify("here", Started(0, 1))
    far.notify("far", Lost(255))
    far.turn()
    assert (far.agents.opened, [*far.agents.started]) == (["far"], [0, 1])
    far.agents.refuses = True  # as on a machine that cannot start another process
    far.notify("far", Lost(255, has_connected=False))
    far.turn()
    far.agents.refuses = False
    far.desire(("here",))
    far.notify("far", Lost(255, has_connected=False))
    far.turn()
    assert far.agents.opened == ["far"]


def test_a_worker_that_cannot_begin_on_a_host_is_done_without(far: Running) -> None:
    far.notify("far", ProcessEnded(1, 127, has_begun=False))
    assert far.of("failed", "released") == [("released", 1), ("failed", 1)]
    assert far.driver._state.outcome is None
    far.notify("here", ProcessEnded(0, 127, has_begun=False))
    assert far.driver._state.outcome is not None


def test_a_checkpoint_counts_when_it_has_been_fetched_and_the_end_of_its_worker_waits(
    far: Running, tmp_path: Path
) -> None:
    far.agents.own_disks = {"far"}
    checkpointed = messages.Checkpointed(5, "/cache/checkpoint/step-00000005", 10, 0.1)
    for about in (checkpointed, messages.CheckpointFailed("full"), messages.CheckpointWanted("/cache")):
        far.driver._receive(1, about)
    assert [event["reason"] for event in far.events if event["event"] == "checkpoint_failed"] == ["far: full"]
    assert far.agents.transfers == [("far", 1, checkpointed), ("far", 1, "/cache")]
    assert far.of("released") == []
    far.notify("far", ProcessEnded(1, 0))
    assert (far.of("released"), far.events[-1]["event"]) == ([], "checkpoint_failed")
    far.notify("far", CheckpointFetched(1, checkpointed, tmp_path))
    far.turn()
    assert (far.events[-1]["event"], far.events[-1]["path"]) == ("checkpointed", str(tmp_path))
    while not far.of("released"):
        far.turn()


@pytest.mark.parametrize("host, said", [("far", "lost"), ("here", "released")])
def test_an_agent_that_does_not_answer_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, host: str, said: str
) -> None:
    monkeypatch.setattr(launched_workers, "KILL_GRACE", 0.0)
    one = Running(("here", host))
    one.driver.put(protocol.Hung(1, "is silent"))
    one.turn()
    assert one.agents.killed == [(host, 1)]
    assert one.of("lost", "released") == []
    one.turn()
    assert one.of("lost", "released") == [(said, 1)]
    one.notify(host, ProcessEnded(1, -9))  # it was only slow
    assert one.of("released") == [("released", 1)]
    one.driver._server.close()
