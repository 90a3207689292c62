"""The state of `restart_all`: the generation in force, and the next one beside it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from edt_launch.membership.members import Membership, Turn, WorldLimits
from edt_launch.membership.protocol import MemberPhase, Slot, Terminate, Worker


@dataclass(frozen=True)
class Generations(Membership):
    """`generation` is the one in force, `size` the size of its world."""

    lineups: Mapping[int, tuple[Slot, ...]] = field(default_factory=dict)
    """The slots of the workers of each generation, by rank: the one in force, and the next."""
    newest: int = 0
    """The generation that was begun last."""
    attempt: int = 0
    """How often the program has failed."""
    has_gate: bool = False
    """Whether a worker has come to the gate."""
    has_saved: bool = False
    saving: frozenset[int] = frozenset()
    """Workers that write a checkpoint."""
    holder: int | None = None
    """The worker of the world in force, rank 0, that holds; None while none does."""
    due_since: float | None = None
    """When it became known that the world in force is to be replaced."""
    returned: int = 0
    """Workers of the world in force that have ended with exit code 0."""
    failed: Worker | None = None
    """The worker of the world in force that failed first; None while none has."""
    is_host_lost: bool = False
    """Whether the world in force has lost a host, which explains all failures in it."""

    @property
    def has_chance(self) -> bool:
        """Whether the program is started again after the failure of a world."""
        return self.is_host_lost or self.attempt < self.limits.max_restarts

    def lineup(self, worker: Worker) -> tuple[Slot, ...]:
        """The slots of all with whom a worker is started, by rank."""
        return self.lineups[worker.generation]

    @property
    def in_force(self) -> list[Worker]:
        """The workers of the generation in force whose processes are there."""
        return [w for w in self.workers.values() if w.generation <= self.generation]

    @property
    def next(self) -> list[Worker]:
        """The workers of the generation that is to follow."""
        return [w for w in self.workers.values() if self.generation < w.generation == self.newest]

    @property
    def is_prepared(self) -> bool:
        """Whether there is a next generation."""
        return self.newest > self.generation and self.newest in self.lineups


class GenerationsTurn(Turn):
    """A turn of `restart_all`."""

    state: Generations

    def end(self, workers: Iterable[Worker], grace: float | None) -> None:
        """End workers: by SIGTERM, and SIGKILL after `grace` seconds, or at once."""
        for worker in workers:
            if worker.phase is not MemberPhase.ENDING:
                self.do(Terminate(worker.id, at_once=grace is None, grace=grace))
                self.change(worker.id, phase=MemberPhase.ENDING)

    def discard(self) -> None:
        """The next generation is not the one that is wanted any more."""
        state = self.state
        if state.is_prepared:
            self.end(state.next, None)
            lineups = {number: slots for number, slots in state.lineups.items() if number != state.newest}
            self.set(lineups=lineups)


def fit(slots: Sequence[Slot], limits: WorldLimits) -> tuple[Slot, ...]:
    """The largest allowed world in these slots: whole nodes, each `limits.unit` slots of one host."""
    hosts = [list(on) for _, on in groupby(slots, lambda slot: slot.host)]
    whole = [slot for on in hosts for slot in on[: len(on) // limits.unit * limits.unit]]
    most = min(len(whole), limits.max_size) // limits.unit * limits.unit
    sizes = [size for size in limits.allowed or (most,) if size <= most]
    return tuple(whole[: max(sizes, default=0)])
