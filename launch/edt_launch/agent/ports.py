"""Ports at which the processes of a gang meet, kept from everybody else."""

import socket

PORT_VARIABLE = "MASTER_PORT"
"""Where the processes of a gang look for the port."""


def reserve_port(address: str = "") -> int:
    """A free port of this host, which the system gives to nobody else as long as this process lives.

    A process that is told of the port can listen there all the same, with SO_REUSEADDR, as torch and common
    servers do: who keeps the port does not listen.
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((address, 0))
        port = int(held.getsockname()[1])
        held.detach()
        return port
