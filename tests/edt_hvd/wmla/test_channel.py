import socket
from dataclasses import replace

import pytest

from edt_hvd.wmla.channel import Address, Listener, Sender
from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.results import EpochDone, Message


def drained(listener: Listener) -> list[Message]:
    """What comes until nobody is connected any more."""
    found: list[Message] = []
    listener.receive(found.append, 10)
    while listener.has_connections:
        listener.receive(found.append, 10)
    return found


def here(listener: Listener) -> Address:
    return replace(listener.address, hosts=("127.0.0.1",))


def test_messages_arrive_in_order() -> None:
    listener = Listener()
    sender = Sender(here(listener))
    sent = [EpochDone(epoch) for epoch in range(2000)]
    for message in sent:
        sender.send(message)
    sender.close()
    assert drained(listener) == sent
    listener.close()


def test_the_driver_has_addresses_that_work() -> None:
    listener = Listener()
    sender = Sender(listener.address)
    sender.send(EpochDone(1))
    sender.close()
    assert drained(listener) == [EpochDone(1)]
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
    new.close()
    old.sendall(b'{"is": "EpochDone", "epoch": 1}\n')
    while len(found) < 2:
        listener.receive(found.append, 10)
    old.sendall(b'{"is": "EpochDone", "epoch": 2}\n')
    old.close()
    assert found + drained(listener) == [EpochDone(epoch) for epoch in range(4)]
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
        new.close()
        while len(listener._received) < 2:
            listener.receive(found.append, 10)
        listener.give_up_oldest()
        assert found + drained(listener) == [EpochDone(0), EpochDone(1)]
    listener.close()


def test_a_sender_that_has_finished_may_begin_again() -> None:
    listener = Listener()
    sender = Sender(here(listener))
    sender.send(EpochDone(0))
    sender.finish()
    sender.send(EpochDone(1))
    sender.close()
    assert sorted(drained(listener), key=str) == [EpochDone(0), EpochDone(1)]
    listener.close()
