"""Which hosts of a job reach each other: when to find out, and whom to do without. Pure.

Two hosts that both reach the launcher may not reach each other: a firewall, a broken route, a switch. Their
workers wait for each other in a collective, or fail to form a world, and neither is silent. When workers have
waited for long, the agents of all hosts connect to each other; that disturbs nobody, so it may be done too
often. The workers of the hosts that are left out are treated as workers that hang.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from edt_launch.launcher.watchdog import REDUCING, Watch
from edt_launch.membership.protocol import MemberPhase, Worker

DOUBT_AFTER = 5.0
"""Seconds that workers wait for others before the agents are asked."""

PROBE_INTERVAL = 10.0
"""Seconds from one probe to the next while that lasts."""

ANSWER_TIMEOUT = 5.0
"""Seconds that the agents have for an answer. One that gives none is another rule's."""

_WAITING = (REDUCING, "forming")
"""Stages in which a worker waits for the others."""

Reached = Mapping[str, Collection[str]]
"""For each host, those that it reaches."""


@dataclass(frozen=True)
class Probing:
    """The probe under way, or the last one."""

    number: int = 0
    begun_at: float = float("-inf")
    hosts: frozenset[str] = frozenset()
    answers: Mapping[str, Collection[str]] = field(default_factory=dict)

    @property
    def is_complete(self) -> bool:
        """Whether all hosts have answered."""
        return bool(self.hosts) and self.hosts == self.answers.keys()


def begin(now: float, probing: Probing, hosts: Iterable[str]) -> Probing:
    """The next probe, of these hosts."""
    return Probing(probing.number + 1, now, frozenset(hosts))


def answered(probing: Probing, number: int, host: str, reached: Collection[str]) -> Probing:
    """The probe with another answer; one that comes too late changes nothing."""
    if number != probing.number or host not in probing.hosts:
        return probing
    return replace(probing, answers={**probing.answers, host: reached})


def hosts_in_doubt(
    now: float, probing: Probing, watch: Watch, workers: Collection[Worker], has_failed: bool
) -> frozenset[str]:
    """The hosts between which something may be wrong, if it is time to find out; else none.

    `has_failed`: a world of members that are all there could not be formed.
    """
    members = [worker for worker in workers if worker.phase in (MemberPhase.ACTIVE, MemberPhase.READY)]
    hosts = frozenset(worker.slot.host for worker in members)
    is_answered = probing.is_complete or now - probing.begun_at >= ANSWER_TIMEOUT
    if len(hosts) < 2 or not is_answered:
        return frozenset()
    if has_failed:
        return hosts
    waits = any(_waits(now, watch, worker) for worker in members if worker.phase is MemberPhase.ACTIVE)
    return hosts if waits and now - probing.begun_at >= PROBE_INTERVAL else frozenset()


def _waits(now: float, watch: Watch, worker: Worker) -> bool:
    heard = watch.heartbeats.get(worker.id)
    if heard is None or heard.heartbeat is None or heard.heartbeat.stage not in _WAITING:
        return False
    return heard.seconds(now, worker.generation) >= DOUBT_AFTER


def left_out(reached: Reached, workers: Collection[Worker]) -> dict[str, str]:
    """The hosts to do without, so that all others reach each other, each with the reason.

    One after the other, that which does not reach most of the others; of equal ones that with the fewest
    workers, then not that of rank 0, then the last by name.
    """
    apart = {
        frozenset((one, other))
        for one in reached
        for other in reached
        if one != other and not (other in reached[one] and one in reached[other])
    }
    sizes = Counter(worker.slot.host for worker in workers)
    first = next((worker.slot.host for worker in workers if worker.rank == 0), "")
    found: dict[str, str] = {}
    while apart:
        counts = Counter(host for pair in apart for host in pair)
        worst = max(counts, key=lambda host: (counts[host], -sizes[host], host != first, host))
        others = sorted(host for pair in apart if worst in pair for host in pair - {worst})
        found[worst] = f"{worst} and {', '.join(others)} do not reach each other"
        apart = {pair for pair in apart if worst not in pair}
    return found
