"""The network connections of a world, so that they can be cut when it has lost a member.

A worker that loses its neighbour in the ring stops, but its own connections stay open: the workers that wait
for *it* would notice only after Gloo's timeout of thirty seconds. Cutting the connections tells them at once.
"""

import os
import socket
from typing import NewType

Connections = NewType("Connections", frozenset[tuple[int, str]])
"""Open sockets of this process: descriptor, and what the system calls the socket behind it."""

NONE = Connections(frozenset())


def open_now() -> Connections:
    """The sockets that are open now; none where the system has no ``/proc``."""
    found = set()
    try:
        descriptors = os.listdir("/proc/self/fd")
    except FileNotFoundError:
        return NONE
    for descriptor in descriptors:
        try:
            target = os.readlink(f"/proc/self/fd/{descriptor}")
        except FileNotFoundError:  # closed meanwhile, like the descriptor of the directory itself
            continue
        if target.startswith("socket:"):
            found.add((int(descriptor), target))
    return Connections(frozenset(found))


def opened_since(before: Connections) -> Connections:
    """The sockets that have been opened since `before`."""
    return Connections(open_now() - before)


def cut(connections: Connections) -> int:
    """Shut down those that are still there and connected; the peers read the end at once.

    Returns:
        How many that were.
    """
    count = 0
    for descriptor, _ in connections & open_now():
        with socket.socket(fileno=os.dup(descriptor)) as connection:
            if connection.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                continue  # it listens; its owner would take the end of that for an error
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:  # the peer was first
                continue
            count += 1
    return count
