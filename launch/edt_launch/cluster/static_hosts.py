"""Where a job's slots come from when no allocation file says so: this machine, `-H`, or a host file."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from edt_launch.cluster.allocation import HOST, Allocation, HostSlots, render
from edt_launch.cluster.devices import Machine
from edt_launch.core.atomic import write_atomically
from edt_launch.core.errors import HostsError, UsageError

LOCAL = "localhost"


def this_host(machine: Machine, max_np: int) -> tuple[HostSlots, ...]:
    """One slot on this machine for each of `max_np` workers, with a GPU each if there are enough."""
    devices = machine.gpus[:max_np] if len(machine.gpus) >= max_np else None
    return (HostSlots(LOCAL, max_np, devices),)


def allocate_here(path: Path, generation: int, size: int, devices: Sequence[str] = ()) -> None:
    """Write an allocation file: `size` slots on this machine, with a device each if there are any.

    Raises:
        OSError: it cannot be written.
    """
    host = HostSlots(LOCAL, size, tuple(devices[:size]) if devices else None)
    write_atomically(path, render(Allocation(generation, (host,))))


def parse_hosts(text: str) -> tuple[HostSlots, ...]:
    """Read the value of `-H`: ``h1:4,h2:4``; a host without a number has one slot.

    Raises:
        HostsError: it makes no sense.
    """
    return _unique("-H", (_host("-H", *_split(part)) for part in text.split(",")))


def read_hostfile(path: Path) -> tuple[HostSlots, ...]:
    """Read a host file: ``host slots=N``, ``host:N`` or ``host`` (one slot) a line, and comments.

    Raises:
        UsageError: it cannot be read.
        HostsError: it makes no sense, or names no host.
    """
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError as error:
        raise UsageError(f"--hostfile {path}: {error.strerror}") from None
    hosts: list[HostSlots] = []
    for number, line in enumerate(lines, start=1):
        content = line.partition("#")[0].strip()
        if content:
            hosts.append(parse_line(f"--hostfile {path}, line {number}", content))
    if not hosts:
        raise HostsError(f"--hostfile {path}", "", "at least one line 'host slots=N'")
    return _unique(f"--hostfile {path}", hosts)


def cap(hosts: Iterable[HostSlots], max_np: int) -> tuple[HostSlots, ...]:
    """The first `max_np` slots; a host that has none left is dropped."""
    left, capped = max_np, []
    for host in hosts:
        slots = min(host.slots, left)
        left -= slots
        if slots:
            capped.append(HostSlots(host.host, slots, host.devices and host.devices[:slots]))
    return tuple(capped)


def fixed(hosts: tuple[HostSlots, ...], max_np: int) -> Allocation:
    """The allocation of a job whose hosts do not change."""
    return Allocation(1, cap(hosts, max_np))


def _split(part: str) -> tuple[str, str]:
    host, colon, slots = part.strip().partition(":")
    return host, slots if colon else "1"


def parse_line(where: str, content: str) -> HostSlots:
    """Read a line of a host file, without its comment: ``host slots=N``, ``host:N`` or ``host`` (one slot).

    Raises:
        HostsError: it makes no sense; the message begins with `where`.
    """
    words = content.split()
    if len(words) == 1:
        return _host(where, *_split(content))
    named = dict(word.partition("=")[::2] for word in words[1:])
    # Open MPI's other keys (max_slots, port) limit nothing here.
    if "slots" not in named or ":" in words[0]:
        raise HostsError(where, content, "'host slots=N' or 'host:N'")
    return _host(where, words[0], named["slots"])


def _host(where: str, host: str, slots: str) -> HostSlots:
    if not re.fullmatch(HOST, host):
        raise HostsError(where, host, "a host name of letters, digits, '_', '.' and '-', then ':slots'")
    if not re.fullmatch(r"[1-9][0-9]{0,5}", slots):
        raise HostsError(where, slots, f"a number of slots of 1 or more for {host}")
    return HostSlots(host, int(slots))


def _unique(where: str, hosts: Iterable[HostSlots]) -> tuple[HostSlots, ...]:
    unique: dict[str, HostSlots] = {}
    for host in hosts:
        if host.host in unique:
            raise HostsError(where, host.host, "each host once")
        unique[host.host] = host
    return tuple(unique.values())
