"""Values that JSON columns hold, between their form there and Python's."""

from collections.abc import Iterable
from typing import Any

from edt_launch.service.database.records import Held


def read_held(stored: Iterable[tuple[str, Iterable[str]]]) -> Held:
    """Hosts and their devices, from lists of lists."""
    return tuple((host, tuple(devices)) for host, devices in stored)


def write_held(held: Held) -> list[Any]:
    """Hosts and their devices, as lists of lists."""
    return [[host, list(devices)] for host, devices in held]
