"""Ports at which the processes of a gang meet, kept from everybody else."""

from edt_launch.core.system.ports import PortRange, bound

PORT_VARIABLE = "MASTER_PORT"
"""Where the processes of a gang look for the port."""


def reserve_port(address: str = "", ports: PortRange | None = None) -> int:
    """A free port of this host, which nobody else is given as long as this process lives.

    A process that is told of the port can listen there all the same, with SO_REUSEADDR, as torch and common
    servers do: who keeps the port does not listen.

    Raises:
        PortsUsedError: no port of the range is free.
    """
    with bound(address, ports) as held:
        port = int(held.getsockname()[1])
        held.detach()
        return port
