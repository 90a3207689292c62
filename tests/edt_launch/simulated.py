"""A simulated job for tests of the membership protocol: the protocol with a clock that the test holds."""

from edt_launch.membership.members import Membership, WorldLimits
from edt_launch.membership.protocol import Action, Assign, Desired, Event, MemberPhase, Ready, Resize, Slot
from edt_launch.membership.step import GROWTH_INTERVAL, step


def slots(*counts: int, hosts: str = "abc") -> tuple[Slot, ...]:
    return tuple(Slot(host, i) for host, count in zip(hosts, counts, strict=False) for i in range(count))


class Job:
    """The protocol with its clock and the actions it has asked for."""

    def __init__(
        self,
        min_size: int = 1,
        max_size: int = 8,
        ready_timeout: float | None = None,
        resize: Resize = Resize.IN_PLACE,
        has_to_train: bool = False,
    ) -> None:
        self.now = 100.0
        limits = WorldLimits(min_size, max_size, ready_timeout, has_to_train=has_to_train, resize=resize)
        self.state = Membership(limits)

    def __call__(self, event: Event) -> list[Action]:
        self.state, actions = step(self.now, self.state, event)
        return actions

    def grown_to(self, count: int) -> "Job":
        """Desired, started, at the rendezvous and assigned."""
        self(Desired(slots(count)))
        for worker in list(self.state.workers.values()):
            if worker.phase is MemberPhase.STARTING:
                self(Ready(worker.id, 0))
        for worker in self.state.world:
            self(Ready(worker.id, 5)) if self.state.stop_sent else None
        assert [w.phase for w in self.state.world] == [MemberPhase.ACTIVE] * count
        self.now += GROWTH_INTERVAL
        return self


def of(kind: type, actions: list[Action]) -> list[Action]:
    return [action for action in actions if isinstance(action, kind)]


def members(actions: list[Action]) -> list[int]:
    """The workers of the world that is formed, by rank."""
    (assign,) = of(Assign, actions)
    return [place.worker for place in assign.assignments]  # type: ignore[attr-defined]
