"""The slots that the host-discovery script shows, with the devices that the allocation file gives them."""

import logging
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from edt_launch.allocation import parse
from edt_launch.errors import AllocationError
from edt_launch.protocol import Slot

log = logging.getLogger(__name__)


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


def discover(script: str, complain: Callable[[str], None] = log.warning) -> tuple[Slot, ...]:
    """Run the host-discovery script (a path); the slots it shows, with the devices the allocation file gives.

    A script that fails or prints nonsense shows nothing, which changes nothing.
    """
    try:
        result = subprocess.run([script], capture_output=True, text=True, check=False)
    except OSError as error:
        complain(f"host discovery cannot be run: {error}")
        return ()
    if result.returncode != 0:
        complain(f"host discovery failed with exit code {result.returncode}: {result.stderr.strip()}")
        return ()
    counts: dict[str, int] = {}
    for line in result.stdout.split():
        host, _, slots = line.partition(":")
        if not slots.isdecimal():
            complain(f"host discovery printed {line!r} instead of host:slots")
            return ()
        counts[host] = int(slots)
    devices = _devices(counts, complain)
    if devices is None:
        return ()
    return tuple(
        Slot(host, index, devices[host][index] if host in devices else None)
        for host, slots in counts.items()
        for index in range(slots)
    )


def _devices(counts: dict[str, int], complain: Callable[[str], None]) -> dict[str, tuple[str, ...]] | None:
    """The devices of hosts that have some; None if the file has changed since the script read it."""
    path = os.environ.get("EDT_ALLOCATION")
    if path is None:
        return {}
    try:
        hosts = parse(Path(path).read_text()).hosts
    except (OSError, AllocationError) as error:
        complain(f"no devices from {path}: {error}")
        return None
    if {host.host: host.slots for host in hosts if host.slots} != counts:
        return None
    return {host.host: host.devices for host in hosts if host.devices is not None}
