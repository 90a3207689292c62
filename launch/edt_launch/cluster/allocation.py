"""The allocation file: which hosts a job has, how many slots on each, and which devices.

::

    # edt allocation v1 generation=17
    node1:2 devices=0,3
    node2:1 devices=5 transport=ssh agent=/opt/edt/bin/edt

The first line names the format and a generation that only grows. Then one host a line; other comments and
blank lines are allowed. A comment `# leave at once` ends workers that lose their slots, which would otherwise
leave after their step. The text ends with a newline: one that does not is only half written. Names are
limited to characters that mean nothing to a shell, because they end up in command lines.
"""

import errno
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from edt_launch.core.errors import AllocationError
from edt_launch.core.files.text_files import decoded

HOST = r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9_][A-Za-z0-9_.-]*"
"""A host name or IPv4 address, perhaps with the name of the user there, `user@host`."""

TRANSPORT = r"[a-z][a-z0-9-]*"
"""The name of a transport."""

AGENT = r"/[A-Za-z0-9_./+@,-]+"
"""The path of the `edt` of a host."""

AGENT_EXPECTED = "the path of the host's edt, such as /opt/edt/bin/edt"

DEVICE = r"[A-Za-z0-9_.:/-]+"
"""The name of a device: an index, or what the driver calls it (GPU-5f3a..., MIG-...)."""

MAX_BYTES = 2**24
"""A larger file is none that an allocator has written."""

MAX_SLOTS = 2**20
"""Slots that one host may have; more is a slip of the pen."""

_AT_ONCE = "# leave at once"

_HEADER = re.compile(r"# edt allocation v1 generation=(?P<generation>.*)")
_HEADER_FORM = "'# edt allocation v1 generation=N' as the first line"
_LINE = re.compile(
    r"(?P<host>[^\s:]*):(?P<slots>\S*)(?:[ \t]+devices=(?P<devices>\S*))?"
    r"(?:[ \t]+transport=(?P<transport>\S*))?(?:[ \t]+agent=(?P<agent>\S*))?"
)
_NUMBER = re.compile(r"0|[1-9][0-9]{0,17}")


@dataclass(frozen=True)
class HostSlots:
    """A host's share of an allocation.

    Attributes:
        host: name or address.
        slots: number of workers it may run.
        devices: one name for each slot, in the order of the slots; None where no devices are bound.
        transport: how its agent is reached; empty for a child on this machine, and ssh to another.
        agent: path of the `edt` that is the agent there; empty for the one that the transport finds.
    """

    host: str
    slots: int
    devices: tuple[str, ...] | None = None
    transport: str = ""
    agent: str = ""


@dataclass(frozen=True)
class Allocation:
    """What a job has from `generation` on; a higher generation replaces it.

    Attributes:
        generation: serial number.
        hosts: with their slots.
        at_once: whether workers that lose their slots are ended, not waited for.
    """

    generation: int
    hosts: tuple[HostSlots, ...]
    at_once: bool = False

    @property
    def slots(self) -> int:
        """Slots on all hosts."""
        return sum(host.slots for host in self.hosts)


def read(path: Path) -> str:
    """The text of an allocation file; pipes and devices are not waited for, and no more is read than may be.

    Raises:
        AllocationError: it is too large.
        OSError: it cannot be read, or is no file.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise AllocationError(None, f"more than {MAX_BYTES} bytes", "one line for each host")
    return decoded(text, "replace")


def parse(text: str) -> Allocation:
    """Read the text of an allocation file.

    Raises:
        AllocationError: the text is empty, half written or nonsensical; it names
            line, value and what is expected.
    """
    if not text.strip():
        raise AllocationError(None, text, _HEADER_FORM)
    if not text.endswith("\n"):
        raise AllocationError(
            None, text.splitlines()[-1], "a newline at the end of the file (is it half written?)"
        )
    first, *rest = text.split("\n")
    generation = _generation(first)
    hosts: dict[str, HostSlots] = {}
    for number, line in enumerate(rest, start=2):
        if not line.strip() or line.startswith("#"):
            continue
        host = _host(number, line.rstrip())
        if host.host in hosts:
            raise AllocationError(number, host.host, "each host once")
        hosts[host.host] = host
    allocation = Allocation(generation, tuple(hosts.values()), _AT_ONCE in rest)
    if not hosts:
        raise AllocationError(None, first, "at least one line 'host:slots' below it")
    if allocation.slots == 0:
        raise AllocationError(None, "0", "at least one slot in total")
    return allocation


def render(allocation: Allocation) -> str:
    """The text of an allocation file; `parse` gives the allocation back.

    Raises:
        AllocationError: the allocation could not be read back.
    """
    lines = [f"# edt allocation v1 generation={allocation.generation}", *[_AT_ONCE] * allocation.at_once]
    for host in allocation.hosts:
        devices = "" if host.devices is None else f" devices={','.join(host.devices)}"
        transport = f" transport={host.transport}" if host.transport else ""
        agent = f" agent={host.agent}" if host.agent else ""
        lines.append(f"{host.host}:{host.slots}{devices}{transport}{agent}")
    text = "\n".join(lines) + "\n"
    if parse(text) != allocation:
        raise AllocationError(None, text, "names without separators")
    return text


def _generation(line: str) -> int:
    header = _HEADER.fullmatch(line.rstrip())
    if header is None:
        raise AllocationError(1, line, _HEADER_FORM)
    if not _NUMBER.fullmatch(header["generation"]):
        raise AllocationError(1, header["generation"], "a whole number, 0 or more, as generation")
    return int(header["generation"])


def _host(number: int, line: str) -> HostSlots:
    parts = _LINE.fullmatch(line)
    if parts is None:
        raise AllocationError(
            number, line, "'host:slots' or 'host:slots devices=a,b transport=ssh agent=PATH'"
        )
    if not re.fullmatch(HOST, parts["host"]):
        raise AllocationError(number, parts["host"], "a host name of letters, digits, '_', '.' and '-'")
    if not _NUMBER.fullmatch(parts["slots"]) or int(parts["slots"]) > MAX_SLOTS:
        raise AllocationError(number, parts["slots"], f"a whole number of slots, 0 to {MAX_SLOTS}")
    slots = int(parts["slots"])
    devices = None if parts["devices"] is None else _devices(number, parts["devices"], slots)
    transport = parts["transport"]
    if transport is not None and not re.fullmatch(TRANSPORT, transport):
        raise AllocationError(number, transport, "the name of a transport, such as ssh")
    agent = parts["agent"]
    if agent is not None and not re.fullmatch(AGENT, agent):
        raise AllocationError(number, agent, AGENT_EXPECTED)
    return HostSlots(parts["host"], slots, devices, transport or "", agent or "")


def _devices(number: int, text: str, slots: int) -> tuple[str, ...]:
    devices = tuple(text.split(",")) if text else ()
    for device in devices:
        if not re.fullmatch(DEVICE, device):
            raise AllocationError(number, device, "a device name of letters, digits and '_.:/-'")
    if len(set(devices)) < len(devices):
        raise AllocationError(number, text, "each device once on a host")
    if len(devices) != slots:
        raise AllocationError(number, text, f"one device for each of the {slots} slots, not {len(devices)}")
    return devices
