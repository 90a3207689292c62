"""Sockets with the options of Gloo's."""

import socket
import struct


def listener() -> socket.socket:
    """One that waits for connections."""
    return socket.create_server(("127.0.0.1", 0))


def pair() -> tuple[socket.socket, socket.socket]:
    """Two that are connected."""
    with listener() as listening:
        one = socket.socket()
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.connect(listening.getsockname())
        other, _ = listening.accept()
    for each in (one, other):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO):
            each.setsockopt(socket.SOL_SOCKET, option, struct.pack("@ll", 30, 0))
    return one, other
