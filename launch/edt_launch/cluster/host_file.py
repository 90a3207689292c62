"""Hosts by their names: ``-H h1:4,h2:4``, or a file with one a line.

The lines are ``node1 slots=4``, ``node1:4``, ``node1`` (one slot), ``node1 devices=0,1,5`` or, for workers
without GPUs, ``node1 slots=4 devices=none``; and comments.
After ``slots`` or ``devices`` may come ``transport=ssh``, by which the host is reached, and
``agent=/opt/edt/bin/edt``, the path of its `edt`.
"""

import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, ClassVar, Self

from typer import Option

from edt_launch.cluster.allocation import AGENT, AGENT_EXPECTED, DEVICE, HOST, TRANSPORT, HostSlots
from edt_launch.cluster.hosts import HostOptions, HostSource, leave_out, without_devices
from edt_launch.core.errors import HostsError, SourceError
from edt_launch.core.files.text_files import decoded

MAX_BYTES = 2**24
"""A larger file is no host file."""

NO_DEVICES = "none"
"""The value of ``devices`` for a host whose workers see no GPU."""


@dataclass(frozen=True)
class HostListOptions:
    """The option of `HostList`."""

    hosts: Annotated[
        str | None, Option("-H", "--hosts", metavar="HOST:SLOTS,...", help="Run on these hosts.")
    ] = None


@dataclass(frozen=True)
class HostList(HostSource):
    """The value of `-H`; a host without a number has one slot."""

    name: ClassVar[str] = "host list"
    options: ClassVar[type] = HostListOptions
    text: str

    def __str__(self) -> str:
        return "-H"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:  # noqa: D102
        text = options.of(HostListOptions).hosts
        return None if text is None else cls(text)

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        parts = self.text.split(",")
        for part in parts:
            _refuse_ipv6(f"{self}", part)
        return _unique((f"{self}", _slots(f"{self}", *_split(part))) for part in parts)


@dataclass(frozen=True)
class HostFileOptions:
    """The option of `HostFile`."""

    hostfile: Annotated[
        Path | None,
        Option(help="Run on the hosts of this file, one a line: 'host slots=N' or 'host devices=a,b'."),
    ] = None


@dataclass
class HostFile(HostSource):
    """A host file, read again whenever it has changed; a half-written one changes nothing."""

    name: ClassVar[str] = "host file"
    options: ClassVar[type] = HostFileOptions
    path: Path
    _read: tuple[object, tuple[HostSlots, ...]] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"--hostfile {self.path}"

    @classmethod
    def detect(cls, options: HostOptions) -> Self | None:  # noqa: D102
        path = options.of(HostFileOptions).hostfile
        if path is None:
            return None
        source = cls(path)
        source.hosts()
        return source

    def hosts(self) -> tuple[HostSlots, ...]:  # noqa: D102
        try:
            status = os.stat(self.path)
            seen = (status.st_mtime_ns, status.st_size, status.st_ino)
            can_change = stat.S_ISREG(status.st_mode)  # what a pipe gives is gone when it has been read
            if self._read is None or (can_change and self._read[0] != seen):
                with self.path.open("rb") as file:
                    data = file.read(MAX_BYTES + 1)
                if len(data) > MAX_BYTES:
                    what = f"more than {MAX_BYTES} bytes"
                    raise SourceError(f"{self}: {what}: name a file with one host a line")
                text = decoded(data, "replace")
                if self._read is not None and not text.endswith("\n"):
                    what = "has changed, and its last line does not end (is it half written?)"
                    raise SourceError(f"{self}: it {what}: end it with a newline")
                self._read = (seen, parse(text, str(self)))
        except OSError as error:
            raise SourceError(f"{self}: {error.strerror}") from None
        return self._read[1]


def parse(text: str, where: str) -> tuple[HostSlots, ...]:
    """Read a host file's text.

    Raises:
        HostsError: it makes no sense; line, value and what is expected are named. Lines with odd names of
            hosts are left out, unless there are no others.
    """
    contents = (line.partition("#")[0].strip() for line in text.splitlines())
    lines = [(f"{where}, line {number}", content) for number, content in enumerate(contents, 1) if content]
    for line, content in lines:
        _refuse_ipv6(line, content.split()[0])
    good = [(line, content) for line, content in lines if _is_named(line, content)]
    hosts = _unique((line, _line(line, content)) for line, content in good or lines)
    if not hosts:
        raise HostsError(where, "", "at least one line 'host slots=N' or 'host devices=a,b'")
    return hosts


def _is_named(where: str, content: str) -> bool:
    """Whether a line begins with the name of a host; one with an odd name is left out with a warning."""
    name = re.split(r"[\s:]", content, maxsplit=1)[0]
    if is_name := bool(re.fullmatch(HOST, name)):
        return is_name
    leave_out(where, name)
    return False


def _line(where: str, content: str) -> HostSlots:
    words = content.split()
    if len(words) == 1:
        return _slots(where, *_split(content))
    named = dict(word.partition("=")[::2] for word in words[1:])
    # Open MPI's other keys (max_slots, port) limit nothing here.
    if ":" in words[0] or not named.keys() & {"slots", "devices"}:
        raise HostsError(where, content, "'host slots=N', 'host:N' or 'host devices=a,b'")
    transport = named.get("transport", "")
    if transport and not re.fullmatch(TRANSPORT, transport):
        raise HostsError(where, transport, "the name of a transport, such as ssh")
    agent = named.get("agent", "")
    if "agent" in named and not re.fullmatch(AGENT, agent):
        raise HostsError(where, agent, AGENT_EXPECTED)
    if "devices" not in named or named["devices"] == NO_DEVICES:
        host = _slots(where, words[0], named.get("slots", "1"))
        if "devices" in named:
            host = without_devices(host.host, host.slots)
        return replace(host, transport=transport, agent=agent)
    devices = tuple(named["devices"].split(","))
    if not all(re.fullmatch(DEVICE, device) for device in devices) or len(set(devices)) < len(devices):
        raise HostsError(where, named["devices"], "names of devices, each once, with commas between")
    return HostSlots(_slots(where, words[0], "1").host, len(devices), devices, transport, agent)


def _refuse_ipv6(where: str, host: str) -> None:
    if host.count(":") > 1:
        raise HostsError(where, host, "a name or an IPv4 address, as workers do not use IPv6")


def _split(part: str) -> tuple[str, str]:
    host, colon, slots = part.strip().partition(":")
    return host, slots if colon else "1"


def _slots(where: str, host: str, slots: str) -> HostSlots:
    if not re.fullmatch(HOST, host):
        raise HostsError(where, host, "a host name of letters, digits, '_', '.' and '-', then ':slots'")
    if not re.fullmatch(r"[1-9][0-9]{0,5}", slots):
        raise HostsError(where, slots, f"a number of slots of 1 or more for {host}")
    return HostSlots(host, int(slots))


def _unique(hosts: Iterable[tuple[str, HostSlots]]) -> tuple[HostSlots, ...]:
    unique: dict[str, HostSlots] = {}
    for where, host in hosts:
        if host.host in unique:
            raise HostsError(where, host.host, "each host once")
        unique[host.host] = host
    return tuple(unique.values())
