"""What a source of hosts is; `cluster.sources` lists those there are."""

import functools
import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self, TypeVar

from edt_launch.cluster.allocation import DEVICE, HOST, HostSlots
from edt_launch.core import command_line
from edt_launch.core.command_line import NoOptions
from edt_launch.core.errors import MAX_SHOWN_CHARACTERS

LOCAL = "localhost"

log = logging.getLogger(__name__)

_T = TypeVar("_T")

_NO_DEVICE = "cpu"


@dataclass(frozen=True)
class HostOptions:
    """What sources are detected from: the environment, and the options that they have declared."""

    environment: Mapping[str, str] = field(default_factory=dict)
    groups: tuple[object, ...] = ()

    def of(self, group: type[_T]) -> _T:
        """The options of a source."""
        return command_line.of(self.groups, group)


class HostSource(ABC):
    """Knows hosts and their devices. `str` gives what messages call it.

    Of a source that may change, and of every one of the service, all methods but `detect` are called from one
    thread, which may wait.

    Attributes:
        name: of its kind, as `edt hosts --json` has it.
        options: a dataclass of those that it has, declared as in `core.run_options`. They are options of
            `edt-launch` and `edt serve`, and settings of the service. It is asked for with the first one.
        transport: how jobs of the service reach its hosts that are not this machine; empty for ssh.
        may_change: whether a running job of `edt-launch` follows what it says. `edt serve` always does.
        may_grow: whether there may be more hosts later, so that a job of `edt-launch` needs an upper bound.
        oversubscribes: whether a job of `edt-launch` may have more workers on the one host than it has slots.
    """

    name: ClassVar[str]
    options: ClassVar[type] = NoOptions
    transport: ClassVar[str] = ""
    may_change: ClassVar[bool] = False
    may_grow: ClassVar[bool] = False
    oversubscribes: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def detect(cls, options: HostOptions) -> Self | None:
        """The source, if it is there.

        Raises:
            SourceError: it is there and cannot be used.
        """

    @abstractmethod
    def hosts(self) -> tuple[HostSlots, ...]:
        """The hosts there are now; may be called about once a second.

        What it shows can be used at once: an engine shows the devices that it holds for us.

        Raises:
            SourceError: nobody knows; what was known before goes on to count.
        """

    def reserve(self, host: str, devices: Sequence[str]) -> None:  # noqa: B027 - most hold nothing
        """Jobs have these devices of a host, too, from now on. Slots without devices are numbered from 0."""

    def release(self, host: str, devices: Sequence[str]) -> None:  # noqa: B027
        """No job has these devices of a host any more."""

    def demand(self, slots: int) -> None:  # noqa: B027 - most cannot get more hosts
        """Jobs could use so many slots more than `hosts` shows; said whenever the number changes."""

    def waiting(self) -> str:
        """What the source is waiting for to meet the demand, in words; empty if it is not."""
        return ""

    def close(self) -> None:  # noqa: B027
        """Nobody needs its hosts any more."""


def usable(hosts: Iterable[HostSlots], where: str) -> tuple[HostSlots, ...]:
    """The hosts that a job can have; others are left out with a warning, as a cluster has more than one.

    Args:
        hosts: of a source.
        where: what messages call it.
    """
    found = []
    for host in hosts:
        if not re.fullmatch(HOST, host.host):
            leave_out(where, host.host)
        elif odd := next((name for name in host.devices or () if not re.fullmatch(DEVICE, name)), None):
            leave_out(
                where,
                host.host,
                f"its device {odd[:MAX_SHOWN_CHARACTERS]!r}: expected letters, digits and '_.:/-'",
            )
        else:
            found.append(host)
    return tuple(found)


@functools.lru_cache(maxsize=1000)
def leave_out(where: str, host: str, problem: str = "") -> None:
    """Warn that a host is left out; once, as sources are asked every second."""
    expected = "expected a host name of letters, digits, '_', '.' and '-'"
    log.warning(
        "%s: host %r is left out: %s; mend the source",
        where,
        host[:MAX_SHOWN_CHARACTERS],
        problem or expected,
    )


def ways(hosts: Mapping[str, HostSlots]) -> dict[str, tuple[str, str]]:
    """The transports and agents that hosts name, by the names of the hosts."""
    return {name: (host.transport, host.agent) for name, host in hosts.items()}


def without_devices(host: str, count: int) -> HostSlots:
    """A host whose slots have names, and no GPU: none has such a name, so that a worker there sees none."""
    return HostSlots(host, count, tuple(f"{_NO_DEVICE}{index}" for index in range(count)))


def is_gpu(device: str) -> bool:
    """Whether a slot of that name has a GPU."""
    return not device.startswith(_NO_DEVICE)


def unbound(host: HostSlots) -> HostSlots:
    """The host, without names of slots that are no devices."""
    has_none = host.devices is None or not any(map(is_gpu, host.devices))
    return replace(host, devices=None) if has_none else host


def spread(host: HostSlots, count: int) -> HostSlots:
    """So many slots on a host, with a device each if it has enough of them."""
    has_enough = host.devices is not None and len(host.devices) >= count
    return replace(host, slots=count, devices=host.devices[:count] if host.devices and has_enough else None)


def cap(hosts: Iterable[HostSlots], most: int) -> tuple[HostSlots, ...]:
    """The first `most` slots; a host that has none left is dropped."""
    left, capped = most, []
    for host in hosts:
        slots = min(host.slots, left)
        left -= slots
        if slots:
            capped.append(replace(host, slots=slots, devices=host.devices and host.devices[:slots]))
    return tuple(capped)
