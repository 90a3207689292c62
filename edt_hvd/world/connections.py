"""The network connections of a world, so that they can be cut when it has lost a member.

Horovod ends a world in which an operation has failed, and closes its connections. But a loss does not show on
every connection, that to a host without power for instance: who waits there would notice only after Gloo's
timeout of thirty seconds. Cutting the connections when the launcher tells of the loss ends the wait at once.

The script may have opened sockets at the same time. Gloo's are TCP, bound to one address, that of the network
interface, with SO_REUSEADDR set; when they are connected they get TCP_NODELAY, and both ways the same
timeout, which few others ever have. What looks different is left alone.
"""

import ipaddress
import os
import socket
import struct
from typing import NewType

Connections = NewType("Connections", frozenset[tuple[int, str]])
"""Open sockets of this process: descriptor, and what the system calls the socket behind it."""

_TIMEVAL = struct.calcsize("@ll")
"""Bytes of C's struct timeval."""

NONE = Connections(frozenset())


def open_now() -> Connections:
    """The sockets that are open now; none where the system has no ``/proc``."""
    try:
        descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    except FileNotFoundError:
        return NONE
    named = ((descriptor, _socket_name(descriptor)) for descriptor in descriptors)
    return Connections(frozenset((descriptor, name) for descriptor, name in named if name is not None))


def opened_since(before: Connections) -> Connections:
    """The sockets that have been opened since `before`."""
    return Connections(open_now() - before)


def cut(connections: Connections) -> int:
    """Let nobody read on from those that are still there and connected; Gloo then closes them at once.

    Writing is left open: Gloo forgets to tell who waits for a send that fails before a read has.

    Their owners may close them at the same time, and open others under the same descriptors.

    Returns:
        How many that were.
    """
    return sum(_cut(descriptor, name, listening=False) for descriptor, name in connections)


def break_off(connections: Connections) -> int:
    """As `cut`, and let those that wait for a connection wait no more: their owners take it for an error.

    Returns:
        How many that were.
    """
    return sum(_cut(descriptor, name, listening=True) for descriptor, name in connections)


def _cut(descriptor: int, name: str, listening: bool) -> bool:
    try:
        copy = os.dup(descriptor)
    except OSError:  # closed already
        return False
    if _socket_name(copy) != name:
        os.close(copy)
        return False
    with socket.socket(fileno=copy) as connection:
        try:
            if not (_may_be_gloos(connection) if listening else _is_gloos(connection)):
                return False
            connection.shutdown(socket.SHUT_RD)
        except OSError:  # the peer was first
            return False
    return True


def _may_be_gloos(connection: socket.socket) -> bool:
    """Whether it looks like one of Gloo's, connected or not."""
    return (
        connection.family in (socket.AF_INET, socket.AF_INET6)
        and connection.type == socket.SOCK_STREAM
        and connection.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR) != 0
        and not ipaddress.ip_address(connection.getsockname()[0].partition("%")[0]).is_unspecified
    )


def _is_gloos(connection: socket.socket) -> bool:
    """Whether it looks like one of Gloo's that is connected."""
    if not _may_be_gloos(connection) or not connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY):
        return False
    there, back = (
        connection.getsockopt(socket.SOL_SOCKET, option, _TIMEVAL)
        for option in (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)
    )
    return there == back and any(there)


def _socket_name(descriptor: int) -> str | None:
    """What the system calls the socket behind a descriptor; None if there is none."""
    try:
        target = os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:  # closed meanwhile
        return None
    return target if target.startswith("socket:") else None
