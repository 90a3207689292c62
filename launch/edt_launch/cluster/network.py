"""Which hosts are this machine, and over which interface the workers talk."""

import ipaddress
import socket
import time
from collections.abc import Callable, Iterable, Mapping

import psutil

from edt_launch.core.errors import StartError, UsageError

ASK_AGAIN = 10.0
"""Seconds after which a host that was not found is looked up again."""

Resolve = Callable[[str], str | None]
"""The IPv4 address of a host; None if it is not known."""

Interfaces = Mapping[str, tuple[str, ...]]
"""The IPv4 addresses of each network interface."""


def resolve(host: str) -> str | None:
    """Ask the system's resolver, as Horovod does."""
    try:
        return socket.gethostbyname(host)
    except (OSError, UnicodeError):
        return None


def interfaces() -> Interfaces:
    """This machine's interfaces that have an IPv4 address."""
    found = {
        name: tuple(a.address for a in addresses if a.family == socket.AF_INET)
        for name, addresses in psutil.net_if_addrs().items()
    }
    return {name: addresses for name, addresses in found.items() if addresses}


def source_address(address: str) -> str | None:
    """Our address on the way to `address`; None if there is no way. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))  # the discard port; a datagram socket only looks up the route
        except OSError:
            return None
        source: str = probe.getsockname()[0]
        return source


def is_loopback(interface: str, known: Interfaces) -> bool:
    """Whether only this machine can be reached over the interface."""
    addresses = known.get(interface, ())
    return bool(addresses) and all(ipaddress.ip_address(address).is_loopback for address in addresses)


def is_local(address: str, known: Interfaces) -> bool:
    """Whether the address is this machine's."""
    return ipaddress.ip_address(address).is_loopback or any(
        address in addresses for addresses in known.values()
    )


def choose_interface(
    named: str | None,
    hosts: Iterable[str],
    known: Interfaces,
    resolve: Resolve = resolve,
    route: Resolve = source_address,
) -> str:
    """The interface over which workers on `hosts` talk.

    Args:
        named: what the user wants; None to choose: loopback while every host is this machine, else the
            interface that leads to the first one that is not.
        hosts: the hosts of the job.
        known: this machine's interfaces.
        resolve: finds a host's address.
        route: finds our address on the way to an address.

    Raises:
        UsageError: there is no interface `named`.
        StartError: none leads to the first remote host.
    """
    if named is not None:
        if named not in known:
            raise UsageError(
                f"--network-interface {named}: not here or without IPv4 address; there are {', '.join(known)}"
            )
        return named
    addresses = ((host, resolve(host)) for host in hosts)
    remote = next(((h, a) for h, a in addresses if a is not None and not is_local(a, known)), None)
    if remote is None:
        return next((name for name in known if is_loopback(name, known)), "lo")
    source = route(remote[1])
    for name, ours in known.items():
        if source in ours:
            return name
    raise StartError(
        f"no network interface leads to {remote[0]} ({remote[1]}): name one of {', '.join(known)} "
        "with --network-interface"
    )


def check_host(interface: str | None, known: Interfaces, resolve: Resolve, host: str) -> str | None:
    """What is wrong with a host of an allocation, in words; None if workers can run on it.

    Args:
        interface: over which the workers talk; None if it is not chosen yet.
        known: this machine's interfaces.
        resolve: finds a host's address.
        host: its name.
    """
    address = resolve(host)
    if address is None:
        return f"unknown host {host!r}: no address is known for it"
    if interface is not None and is_loopback(interface, known) and not is_local(address, known):
        return (
            f"host {host!r} ({address}) cannot be reached over {interface}: start the job with "
            "--network-interface to let it use other machines"
        )
    return None


class HostChecker:
    """`check_host` for this machine; an address once found is remembered, as allocations change often.

    A host that was not found is not asked for again for `ASK_AGAIN` seconds, as a resolver may be slow.

    Attributes:
        interface: over which the workers talk; None until it is chosen, when every known host will do.
    """

    def __init__(self, resolve: Resolve = resolve, clock: Callable[[], float] = time.monotonic) -> None:
        self.interface: str | None = None
        self._known = interfaces()
        self._resolve = resolve
        self._clock = clock
        self._addresses: dict[str, str] = {}
        self._not_found_at: dict[str, float] = {}

    def __call__(self, host: str) -> str | None:
        """What is wrong with the host, in words; None if workers can run on it."""
        return check_host(self.interface, self._known, self.address, host)

    def address(self, host: str) -> str | None:
        """The host's address; None if it is not known."""
        if host in self._addresses:
            return self._addresses[host]
        now = self._clock()
        if now - self._not_found_at.get(host, -ASK_AGAIN) < ASK_AGAIN:
            return None
        address = self._resolve(host)
        if address is not None:
            self._addresses[host] = address
        else:
            self._not_found_at[host] = now
        return address

    def is_remote(self, host: str) -> bool:
        """Whether the host is another machine."""
        address = self.address(host)
        return address is not None and not is_local(address, self._known)

    def address_on(self, interface: str) -> str:
        """This machine's address on one of its interfaces."""
        return self._known[interface][0]

    def choose(self, named: str | None, hosts: Iterable[str]) -> str:
        """Choose the interface, see `choose_interface`."""
        self.interface = choose_interface(named, hosts, self._known, self.address)
        return self.interface
