"""Which hosts are this machine, and over which interface the workers talk."""

import ipaddress
import socket
import time
from collections.abc import Callable, Iterable, Mapping

import psutil

from edt_launch.core.errors import StartError, UsageError

LOOPBACK = "127.0.0.1"

ASK_AGAIN = 10.0
"""Seconds after which a host that was not found is looked up again."""

Resolve = Callable[[str], str | None]
"""The IPv4 address of a host; None if it is not known."""

Interfaces = Mapping[str, tuple[str, ...]]
"""The IPv4 addresses of each network interface."""


def resolve(host: str) -> str | None:
    """Ask the system's resolver, as Horovod does.

    The machine's own name needs no resolver: it is often unknown there, or leads elsewhere (laptops, VPNs,
    containers).
    """
    if host == socket.gethostname():
        return LOOPBACK
    try:
        return socket.gethostbyname(host)
    except (OSError, UnicodeError):
        return None


def interfaces() -> Interfaces:
    """This machine's interfaces that have an IPv4 address."""
    every = {
        name: tuple(a.address for a in addresses if a.family == socket.AF_INET)
        for name, addresses in psutil.net_if_addrs().items()
    }
    return {name: addresses for name, addresses in every.items() if addresses}


def source_address(address: str) -> str | None:
    """Our address on the way to `address`; None if there is no way. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((address, 9))  # the discard port; a datagram socket only looks up the route
        except OSError:
            return None
        source: str = probe.getsockname()[0]
        return source


def public_name() -> str:
    """What other machines call this one: its name, or an address where the name does not lead here."""
    name, every = (
        socket.gethostname(),
        [address for addresses in interfaces().values() for address in addresses],
    )
    try:
        address = socket.gethostbyname(name)
    except (OSError, UnicodeError):
        address = ""
    if address in every or address.startswith("127."):
        return name
    return next((one for one in every if not one.startswith("127.")), LOOPBACK)


class HostChecker:
    """`check_host` for this machine; an address once found is remembered, as allocations change often.

    A host that was not found is not asked for again for `ASK_AGAIN` seconds, as a resolver may be slow.

    Args:
        resolve: finds a host's address.
        clock: gives seconds.
        known: this machine's interfaces, else those there are.
        route: finds our address on the way to an address.
        interface: of this machine, over which the workers talk; None to go by where they run.

    Raises:
        UsageError: there is no such interface.
    """

    def __init__(
        self,
        resolve: Resolve = resolve,
        clock: Callable[[], float] = time.monotonic,
        known: Interfaces | None = None,
        route: Resolve = source_address,
        interface: str | None = None,
    ) -> None:
        self._known = interfaces() if known is None else known
        if interface is not None and interface not in self._known:
            problem = f"not here or without IPv4 address; there are {', '.join(self._known)}"
            raise UsageError(f"--network-interface {interface}: {problem}")
        self._interface = interface
        self.given: Resolve = lambda host: None
        """Knows the addresses of some hosts, whose names are not looked up."""
        self._resolve = resolve
        self._route = route
        self._clock = clock
        self._addresses: dict[str, str] = {}
        self._not_found_at: dict[str, float] = {}

    def __call__(self, host: str) -> str | None:
        """What is wrong with the host, in words; None if workers can run on it."""
        address, interface = self.address(host), self._interface
        if address is None:
            return (
                f"unknown host {host!r}: no IPv4 address is known for it; mend its name, or enter it in "
                "/etc/hosts or DNS"
            )
        if interface is not None and self._is_loopback(interface) and not self._is_local(address):
            return (
                f"host {host!r} ({address}) cannot be reached over {interface}: start the job with "
                "--network-interface to let it use other machines"
            )
        return None

    def check_anew(self, host: str) -> str | None:
        """As a call, but a host that was not found is looked up again: for threads that may wait."""
        self._not_found_at.pop(host, None)
        return self(host)

    def address(self, host: str) -> str | None:
        """The host's address; None if it is not known."""
        if (given := self.given(host)) is not None:
            return given
        if host in self._addresses:
            return self._addresses[host]
        now = self._clock()
        if now - self._not_found_at.get(host, -ASK_AGAIN) < ASK_AGAIN:
            return None
        address = self._resolve(host.rpartition("@")[2])
        if address is not None:
            self._addresses[host] = address
        else:
            self._not_found_at[host] = now
        return address

    def is_remote(self, host: str) -> bool:
        """Whether the host is another machine, or this one under the name of another user."""
        address = self.address(host)
        return address is not None and ("@" in host or not self._is_local(address))

    def is_this_machine(self, host: str) -> bool:
        """Whether the host is known to be this machine, with this user."""
        return self.address(host) is not None and not self.is_remote(host)

    def fix_interface(self, interface: str) -> None:
        """Have the workers talk over this interface from now on, wherever they run."""
        self._interface = interface

    def address_towards(self, hosts: Iterable[str]) -> str:
        """This machine's address for workers on all of `hosts`.

        On the interface that was named; else that of the loopback while every host is this machine, else the
        one on the way to the first host that is not.

        Raises:
            StartError: no way leads to that host.
        """
        if self._interface is not None:
            return self._known[self._interface][0]
        remote = next(filter(self.is_remote, hosts), None)
        if remote is None:
            return next((self._known[name][0] for name in self._known if self._is_loopback(name)), LOOPBACK)
        source = self._route(self.address(remote) or "")
        if source is None:
            raise StartError(
                f"no network interface leads to {remote} ({self.address(remote)}): name one of "
                f"{', '.join(self._known)} with --network-interface"
            )
        return source

    def interface_towards(self, hosts: Iterable[str]) -> str:
        """The interface of `address_towards`.

        Raises:
            StartError: there is none.
        """
        address = self.address_towards(hosts)
        return next((name for name, ours in self._known.items() if address in ours), "lo")

    def _is_loopback(self, interface: str) -> bool:
        addresses = self._known.get(interface, ())
        return bool(addresses) and all(ipaddress.ip_address(address).is_loopback for address in addresses)

    def _is_local(self, address: str) -> bool:
        ours = (address in addresses for addresses in self._known.values())
        return ipaddress.ip_address(address).is_loopback or any(ours)
