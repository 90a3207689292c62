"""The slots that the host-discovery script shows, with the devices that the allocation file gives them."""

import logging
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edt_launch.errors import AllocationError
from edt_launch.hosts.allocation import HostSlots, parse
from edt_launch.membership.protocol import Slot

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shown:
    """What the script shows: nothing if there are no slots.

    Attributes:
        slots: with their devices.
        generation: of the allocation file that they are from; None without one.
    """

    slots: tuple[Slot, ...] = ()
    generation: int | None = None


class Complaints:
    """Logs what is wrong when it changes, not whenever it is seen."""

    def __init__(self) -> None:
        self._last = ""

    def __call__(self, text: str) -> None:
        """Something is wrong."""
        if text != self._last:
            log.warning("%s", text)
        self._last = text

    def settle(self) -> None:
        """Nothing is wrong any more."""
        self._last = ""


def discover(script: str, complain: Callable[[str], None] = log.warning) -> Shown:
    """Run the host-discovery script (a path); the slots it shows, with the devices the allocation file gives.

    A script that fails or prints nonsense shows nothing, which changes nothing.
    """
    try:
        result = subprocess.run([script], capture_output=True, text=True, check=False)
    except OSError as error:
        complain(f"host discovery cannot be run: {error}")
        return Shown()
    if result.returncode != 0:
        complain(f"host discovery failed with exit code {result.returncode}: {result.stderr.strip()}")
        return Shown()
    counts: dict[str, int] = {}
    for line in result.stdout.split():
        host, _, slots = line.partition(":")
        if not slots.isdecimal():
            complain(f"host discovery printed {line!r} instead of host:slots")
            return Shown()
        counts[host] = int(slots)
    return _with_devices(counts, complain)


def _with_devices(counts: dict[str, int], complain: Callable[[str], None]) -> Shown:
    """The slots with their devices; nothing if the file has changed since the script read it."""
    path = os.environ.get("EDT_ALLOCATION")
    generation = None
    hosts: tuple[HostSlots, ...] = ()
    if path is not None:
        try:
            allocation = parse(Path(path).read_text())
        except (OSError, AllocationError) as error:
            complain(f"no devices from {path}: {error}")
            return Shown()
        hosts, generation = allocation.hosts, allocation.generation
        if {host.host: host.slots for host in hosts if host.slots} != counts:
            return Shown()
    devices = {host.host: host.devices for host in hosts if host.devices is not None}
    slots = (
        Slot(host, index, devices[host][index] if host in devices else None)
        for host, slots in counts.items()
        for index in range(slots)
    )
    return Shown(tuple(slots), generation)
