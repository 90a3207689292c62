"""The network interface over which this worker reaches the others, whatever its name is on other hosts."""

import socket

import psutil

DISCARD_PORT = 9


def interface_towards(address: str) -> str:
    """The interface on the way to an IPv4 address. Nothing is sent.

    Raises:
        OSError: no way leads there.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((address, DISCARD_PORT))  # of a datagram socket: looks up the route
        source = probe.getsockname()[0]
    for name, addresses in psutil.net_if_addrs().items():
        if any(at.family == socket.AF_INET and at.address == source for at in addresses):
            return name
    raise OSError(f"no network interface has the address {source}, by which {address} is reached")
