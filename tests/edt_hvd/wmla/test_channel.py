import socket
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

import edt_hvd
from edt_hvd.wmla import channel
from edt_hvd.wmla.channel import SILENCE, Address, Listener, Sender
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.results import EpochDone, Message, encode


def drained(listener: Listener, *senders: Sender) -> list[Message]:
    """What comes until the senders are closed, and nobody is connected any more."""
    found: list[Message] = []
    closing = [threading.Thread(target=sender.close) for sender in senders]
    for each in closing:
        each.start()
    listener.receive(found.append, 10)
    while listener.has_connections or any(each.is_alive() for each in closing):
        listener.receive(found.append, 0.1)
    return found


def here(listener: Listener) -> Address:
    return replace(listener.address, hosts=("127.0.0.1",))


def test_messages_arrive_in_order() -> None:
    listener = Listener()
    sender = Sender(here(listener))
    sent = [EpochDone(epoch) for epoch in range(2000)]
    for message in sent:
        sender.send(message)
    assert drained(listener, sender) == sent
    listener.close()


def test_the_driver_has_addresses_that_work() -> None:
    listener = Listener()
    sender = Sender(listener.address)
    sender.send(EpochDone(1))
    assert drained(listener, sender) == [EpochDone(1)]
    listener.close()


@pytest.mark.parametrize("first", [b"wrong\n", b'{"is": "EpochDone", "epoch": 1}\n', b"", b"half"])
def test_strangers_are_not_listened_to(first: bytes) -> None:
    listener = Listener()
    with socket.create_connection(("127.0.0.1", listener.address.port)) as stranger:
        stranger.sendall(first + b'{"is": "EpochDone", "epoch": 1}\n')
    assert drained(listener) == []
    listener.close()


def test_what_a_dead_executor_has_sent_halfway_does_not_count() -> None:
    listener = Listener()
    with socket.create_connection(("127.0.0.1", listener.address.port)) as dying:
        dying.sendall(listener.address.token.encode() + b'\n{"is": "EpochDone", "epoch": 1}\n{"is": "Epo')
    assert drained(listener) == [EpochDone(1)]
    listener.close()


def test_an_executor_without_results_does_not_connect() -> None:
    Sender(Address((), 1, "")).close()


def test_a_driver_that_is_gone_is_named() -> None:
    listener = Listener()
    address = here(listener)
    listener.close()
    sender = Sender(address)
    sender.send(EpochDone(0))
    with pytest.raises(WmlaError, match=rf"127.0.0.1 port {address.port} cannot be reached"):
        sender.close()


def test_what_an_older_connection_has_sent_comes_first() -> None:
    listener = Listener()
    old = socket.create_connection(("127.0.0.1", listener.address.port))
    token = listener.address.token.encode() + b"\n"
    old.sendall(token + b'{"is": "EpochDone", "epoch": 0}\n')
    found: list[Message] = []
    while not found:
        listener.receive(found.append, 10)
    new = Sender(here(listener))
    new.send(EpochDone(3))
    old.sendall(b'{"is": "EpochDone", "epoch": 1}\n')
    while len(found) < 2:
        listener.receive(found.append, 10)
    old.sendall(b'{"is": "EpochDone", "epoch": 2}\n')
    old.close()
    assert found + drained(listener, new) == [EpochDone(epoch) for epoch in range(4)]
    listener.close()


def test_a_connection_whose_end_does_not_come_is_given_up() -> None:
    listener = Listener()
    with socket.create_connection(("127.0.0.1", listener.address.port)) as lost:
        lost.sendall(listener.address.token.encode() + b'\n{"is": "EpochDone", "epoch": 0}\n')
        found: list[Message] = []
        while not found:
            listener.receive(found.append, 10)
        new = Sender(here(listener))
        new.send(EpochDone(1))
        while len(listener._received) < 2:
            listener.receive(found.append, 10)
        listener.give_up_oldest()
        assert found + drained(listener, new) == [EpochDone(0), EpochDone(1)]
    listener.close()


def test_nobody_waits_for_one_that_is_silent() -> None:
    clock = [0.0]
    listener = Listener(clock=lambda: clock[-1])
    found: list[Message] = []
    with socket.create_connection(("127.0.0.1", listener.address.port)) as silent:
        silent.sendall(listener.address.token.encode() + b"\n")
        while not listener._trusted:
            listener.receive(found.append, 10)
        new = Sender(here(listener))
        new.send(EpochDone(0))
        while len(listener._trusted) < 2:
            listener.receive(found.append, 10)
        for now in (0.0, SILENCE):
            clock.append(now)
            listener.receive(found.append)
            assert found == []
        silent.sendall(encode(EpochDone(7))[:3])  # not silent after all
        while listener._silent_since is not None:
            listener.receive(found.append, 10)
        for now in (SILENCE + 1, 2 * SILENCE + 2):
            clock.append(now)
            listener.receive(found.append)
        assert found + drained(listener, new) == [EpochDone(0)]
    listener.close()


def test_a_sender_that_has_finished_may_begin_again() -> None:
    listener = Listener()
    sender = Sender(here(listener))
    sender.send(EpochDone(0))
    sender.finish()
    sender.send(EpochDone(1))
    assert sorted(drained(listener, sender), key=str) == [EpochDone(0), EpochDone(1)]
    listener.close()


def test_waiting_ends_when_enough_is_taken() -> None:
    listener = Listener()
    sender = Sender(here(listener))
    found: list[Message] = []
    for epoch in range(40):
        sender.send(EpochDone(epoch))
    waiting = threading.Thread(target=sender.wait, args=(0,))
    waiting.start()
    while waiting.is_alive():
        listener.receive(found.append, 0.01)
    assert len(found) == 40
    assert found + drained(listener, sender) == [EpochDone(epoch) for epoch in range(40)]
    listener.close()


def test_who_waits_for_a_slow_driver_gets_on(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener()
    sender = Sender(here(listener))
    heartbeats = threading.Semaphore(0)
    monkeypatch.setattr(channel, "HEARTBEAT", 0.01)
    monkeypatch.setattr(edt_hvd, "heartbeat", heartbeats.release)
    sender.send(EpochDone(0))
    waiting = threading.Thread(target=sender.wait, args=(0,))
    waiting.start()
    for _ in range(3):
        assert heartbeats.acquire(timeout=60)
    assert waiting.is_alive()
    assert drained(listener, sender) == [EpochDone(0)]
    waiting.join()
    listener.close()


@pytest.mark.parametrize("most", [0, 3])
def test_nobody_waits_for_a_driver_that_has_gone(most: int) -> None:
    listener = Listener()
    sender = Sender(here(listener))
    for epoch in range(9):
        sender.send(EpochDone(epoch))
    while not listener.has_connections:
        listener.receive(lambda _: None, 10)
    listener.close()
    with pytest.raises(WmlaError, match="cannot be reached"):
        sender.wait(most)


KILLED = """
import os, signal, sys
from edt_hvd.wmla.channel import Address, Sender
from edt_hvd.wmla.results import MiniBatch, StepDone

batch = MiniBatch(64, 0.12345679104328156, 12.345678329467773, (0.12345679104328156,) * 4)
sender = Sender(Address(("127.0.0.1",), int(sys.argv[1]), sys.argv[2]))
for step in range(513):
    sender.send(StepDone(0, step, 1, (batch,) * 4))
while sender._stream.lines.qsize():
    pass
print("sent", flush=True)
sys.stdin.readline()
"""


def test_what_is_on_the_way_outlives_who_has_sent_it() -> None:
    listener = Listener()
    command = [sys.executable, "-c", KILLED, str(listener.address.port), listener.address.token]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"sent\n"
        killed.kill()
    assert len(drained(listener)) >= 512  # the last may not have been on the way yet
    listener.close()
