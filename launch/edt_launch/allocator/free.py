"""Free devices, and the host that fits best among many."""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush


class Free:
    """Free devices of hosts, with an index by how many a host has.

    Args:
        devices: of each host, in order; hosts are preferred in the order of the mapping.

    Attributes:
        count: all of them.
    """

    def __init__(self, devices: Mapping[str, Sequence[str]]) -> None:
        self._devices = {host: list(names) for host, names in devices.items() if names}
        self._order = {host: place for place, host in enumerate(self._devices)}
        self._by_count: dict[
            int, list[tuple[int, str]]
        ] = {}  # heaps; hosts that have changed are dropped late
        for host, names in self._devices.items():
            self._by_count.setdefault(len(names), []).append((self._order[host], host))
        for hosts in self._by_count.values():
            heapify(hosts)
        self.count = sum(len(names) for names in self._devices.values())

    def __getitem__(self, host: str) -> Sequence[str]:
        """What is free on a host."""
        return self._devices.get(host, ())

    def take(self, host: str, count: int) -> list[str]:
        """Up to `count` of a host's devices, its first ones, which are not free any more."""
        names = self._devices[host]
        taken, left = names[:count], names[count:]
        self._devices[host] = left
        self.count -= len(taken)
        if left:
            heappush(self._by_count.setdefault(len(left), []), (self._order[host], host))
        return taken

    def best(self, count: int, own: Iterable[str]) -> str:
        """The host that `count` devices fit on most closely, else the emptiest; the first of equals.

        Args:
            count: devices wanted.
            own: hosts that are preferred to all others, if something is free there.

        Raises:
            ValueError: nothing is free.
        """
        preferred = [host for host in own if self._devices.get(host)]
        if preferred:
            fitting = [host for host in preferred if len(self._devices[host]) >= count]
            if fitting:
                return min(fitting, key=lambda host: len(self._devices[host]))
            return max(preferred, key=lambda host: len(self._devices[host]))
        known = sorted(self._by_count)
        for number in [*(n for n in known if n >= count), *(n for n in reversed(known) if n < count)]:
            hosts = self._by_count[number]
            while hosts and len(self._devices[hosts[0][1]]) != number:
                heappop(hosts)
            if hosts:
                return hosts[0][1]
            del self._by_count[number]
        raise ValueError("no device is free")
