"""The conversation between the launcher and a worker, over a real socket; the worker's half is edt_hvd's."""

import os
import queue
import threading
from collections.abc import Iterator

import pytest

from edt_hvd.world.control import Launcher
from edt_launch.launcher.control import ControlServer
from edt_messages import messages
from edt_messages.messages import Message

TOKEN = "5ec2e7"
PATIENCE = 120.0
"""Seconds until a test gives up."""
PLACE = messages.Assign(1, 2, 1, 2, 0, 1, "node1", generation=3, port=4711)


class Wire:
    """A server that keeps what it receives, and one worker connected to it."""

    def __init__(self) -> None:
        self.received: queue.Queue[tuple[int, Message]] = queue.Queue()
        self.server = ControlServer(
            "127.0.0.1", TOKEN, lambda worker, message: self.received.put((worker, message))
        )
        self.worker = Launcher(self.server.address, TOKEN, worker=7)
        self.worker._end_orphan = lambda: None  # type: ignore[method-assign]  # this process is the test

    def next(self) -> Message:
        worker, message = self.received.get(timeout=PATIENCE)
        assert worker == 7
        return message


@pytest.fixture
def wire() -> Iterator[Wire]:
    one = Wire()
    one.worker.connect()
    assert one.next() == messages.Hello(TOKEN, 7, os.getpid())
    yield one
    one.worker.close()
    one.server.close()


def at_rendezvous(wire: Wire) -> "queue.Queue[Message | None]":
    """A worker waiting at the rendezvous in a thread; what it gets arrives in the queue."""
    outcome: queue.Queue[Message | None] = queue.Queue()
    wait = wire.worker.wait_for_assignment
    threading.Thread(target=lambda: outcome.put(wait(progress=5)), daemon=True).start()
    return outcome


@pytest.mark.parametrize("is_early", [False, True])
def test_a_worker_waits_at_the_rendezvous_for_its_assignment(wire: Wire, is_early: bool) -> None:
    """One that came before the worker asked is not lost."""
    if is_early:
        wire.server.send(7, PLACE)
    outcome = at_rendezvous(wire)
    assert wire.next() == messages.AtRendezvous(5)
    if not is_early:
        wire.server.send(7, PLACE)
    assert outcome.get(timeout=PATIENCE) == PLACE


def test_the_wanted_generation_only_grows(wire: Wire) -> None:
    announced: list[int] = []
    wire.worker.on_stop = announced.append
    for generation in (4, 2, 4, 6):
        wire.server.send(7, messages.Stop(generation))
    wire.server.send(7, PLACE)
    at_rendezvous(wire).get(timeout=PATIENCE)
    assert announced == [4, 6]
    assert wire.worker.wanted_generation == 6
