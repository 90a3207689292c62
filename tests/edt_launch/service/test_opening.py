import socket

from edt_launch.service.opening import listening_socket
from edt_launch.service.settings import Settings


def test_small_answers_are_sent_at_once() -> None:
    with listening_socket(Settings(port=0)) as listening:
        assert (
            listening.proto == socket.IPPROTO_TCP
        )  # else asyncio leaves Nagle's algorithm on: 40 ms an answer
