"""Places of the processes that WMLA programs without elasticity run as: pure functions from their slots."""

from collections.abc import Sequence

from edt_launch.adapters.wmla.frameworks import Framework
from edt_launch.adapters.wmla.running.environment import Member
from edt_launch.membership.protocol import Slot


def processes(framework: Framework, slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """A slot for each process: `slots` as they are, or a single one with all devices of one host.

    Of several hosts the single process has the one with the most slots, the first among equals.
    """
    if framework is not Framework.SINGLE or not slots:
        return tuple(slots)
    hosts = [slot.host for slot in slots]
    host = max(dict.fromkeys(hosts), key=hosts.count)
    devices = [slot.device for slot in slots if slot.host == host and slot.device is not None]
    return (Slot(host, 0, ",".join(devices) if devices else None),)


def members(slots: Sequence[Slot]) -> dict[tuple[str, str], Member]:
    """The place of each slot's process in the gang, by the slot's key."""
    hosts = [slot.host for slot in slots]
    nodes = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
    return {
        slot.key: Member(
            rank, len(slots), hosts[:rank].count(slot.host), hosts.count(slot.host), nodes[slot.host]
        )
        for rank, slot in enumerate(slots)
    }
