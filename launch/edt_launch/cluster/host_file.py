"""A file that names the hosts: ``node1 slots=4``, ``node1:4`` or ``node1 devices=0,1,5`` a line."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from edt_launch.cluster.allocation import DEVICE
from edt_launch.cluster.sources import DevicesError, HostDevices, Surroundings
from edt_launch.cluster.static_hosts import parse_line
from edt_launch.core.errors import UsageError


@dataclass
class HostFile:
    """A host file, read again whenever it has changed."""

    name: ClassVar[str] = "host file"
    path: Path
    _read: tuple[object, tuple[HostDevices, ...]] | None = field(default=None, repr=False)

    @classmethod
    def detect(cls, around: Surroundings) -> Self | None:
        """If the settings name one."""
        if around.settings.hostfile is None:
            return None
        source = cls(around.settings.hostfile)
        source.hosts()
        return source

    def hosts(self) -> tuple[HostDevices, ...]:
        """What the file says."""
        try:
            status = os.stat(self.path)
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            if self._read is None or self._read[0] != seen:
                text = self.path.read_text(encoding="utf-8", errors="replace")
                self._read = (seen, parse(text, f"{self.path}"))
        except OSError as error:
            raise DevicesError(f"host file {self.path}: {error.strerror}") from None
        return self._read[1]


def parse(text: str, where: str) -> tuple[HostDevices, ...]:
    """Read a host file's text. The devices of ``slots=2`` are called 0 and 1.

    Raises:
        DevicesError: it makes no sense; line, value and what is expected are named.
    """
    found: dict[str, HostDevices] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if not content:
            continue
        place = f"{where}, line {number}"
        host = _host(place, content)
        if host.name in found:
            raise DevicesError(f"{place}: {host.name!r}: expected each host once")
        found[host.name] = host
    if not found:
        raise DevicesError(f"{where}: expected at least one line 'host slots=N' or 'host devices=a,b'")
    return tuple(found.values())


def _host(place: str, content: str) -> HostDevices:
    words = content.split()
    named = next((word.removeprefix("devices=") for word in words[1:] if word.startswith("devices=")), None)
    try:
        if named is None:
            slots = parse_line(place, content)
            return HostDevices(slots.host, tuple(map(str, range(slots.slots))))
        host = parse_line(place, words[0]).host
    except UsageError as error:
        raise DevicesError(str(error)) from None
    devices = tuple(named.split(","))
    if not all(re.fullmatch(DEVICE, device) for device in devices) or len(set(devices)) < len(devices):
        raise DevicesError(f"{place}: {named!r}: expected names of devices, each once, with commas between")
    return HostDevices(host, devices)
