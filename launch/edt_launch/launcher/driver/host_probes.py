"""Finding out which hosts of a job reach each other, when `reachability` has doubts."""

from collections.abc import Callable, Collection, Iterable, Iterator

from edt_launch.launcher.hosts import reachability
from edt_launch.launcher.hosts.agents import Agents
from edt_launch.launcher.watchdog import Watch
from edt_launch.membership import protocol
from edt_launch.membership.protocol import Worker


class HostProbes:
    """Has agents connect to each other; workers that are left out are treated as workers that hang.

    Args:
        agents: connect to each other.
        address_towards: the address of this machine for given hosts.
        address_of: that of another host, if it is known.
    """

    def __init__(
        self,
        agents: Agents,
        address_towards: Callable[[Iterable[str]], str],
        address_of: Callable[[str], str | None],
    ) -> None:
        self._agents = agents
        self._address_towards, self._address_of = address_towards, address_of
        self._probing = reachability.Probing()
        self._could_not_form = False

    def world_failed(self) -> None:
        """Workers that are all there had to form a world anew."""
        self._could_not_form = True

    def tick(self, now: float, watch: Watch, workers: Collection[Worker]) -> None:
        """Begin a probe, if there is doubt."""
        hosts = reachability.hosts_in_doubt(now, self._probing, watch, workers, self._could_not_form)
        if hosts:
            self._could_not_form = False
            here = self._address_towards(hosts)
            addresses = {
                host: here if self._agents.is_here(host) else self._address_of(host) for host in hosts
            }
            known = {host: address for host, address in addresses.items() if address is not None}
            self._probing = reachability.begin(now, self._probing, known)
            self._agents.probe(self._probing.number, known)

    def answered(
        self, number: int, host: str, reached: Collection[str], workers: Collection[Worker]
    ) -> Iterator[protocol.Hung]:
        """The workers to do without, once all hosts have said which of the others they reach."""
        self._probing = reachability.answered(self._probing, number, host, reached)
        if self._probing.is_complete:
            for lost, reason in reachability.left_out(self._probing.answers, workers).items():
                for worker in [worker for worker in workers if worker.slot.host == lost]:
                    yield protocol.Hung(worker.id, f"rank {worker.rank} is left out: {reason}")
