"""Options of the TCP connections between both halves, by which the loss of a peer's host is noticed.

A process that ends closes its connections. A host that loses its power, or a firewall that forgets a
connection, closes nothing: without these options its peers would wait for hours, or for ever.
"""

import socket

PEER_TIMEOUT = 60.0
"""Seconds after which a connection fails whose other end acknowledges nothing, or takes in nothing."""

_PROBES = 9


def end_with_peer(connection: socket.socket, timeout: float = PEER_TIMEOUT) -> None:
    """Have a TCP connection fail when its other end has not answered for `timeout` seconds.

    An idle connection is probed by the kernel. The other end's process need not do anything for that, so a
    process that is stopped is not lost until its kernel has no room for what is sent to it. Small messages
    are sent at once. Options that the system does not know are left out.
    """
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    options = {
        "TCP_KEEPIDLE": max(1, round(timeout / 4)),
        "TCP_KEEPINTVL": max(1, round(timeout * 3 / 4 / _PROBES)),
        "TCP_KEEPCNT": _PROBES,
        "TCP_USER_TIMEOUT": round(timeout * 1000),
    }
    for name, value in options.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
