"""The state of the membership protocol, and the changes to it that several of its parts make."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

from edt_launch.core.history import events
from edt_launch.membership.protocol import Action, Dismiss, MemberPhase, Resize, Slot, Terminate, Worker

GOING = (MemberPhase.DEPARTING, MemberPhase.ENDING)
"""Phases of workers that take no more part."""

SUSPENSION = 5.0
"""Seconds for which a slot is left alone after its first failure; doubles with every further one. A host that
still cannot be reached is no further one, so that it is used soon after it is back.
"""

MAX_SUSPENSION = 600.0
"""Seconds for which a slot is left alone at most."""

START_FAILURES = 4
"""Failures in a slot, before any world was formed, that the job does not survive."""

NOTICE_SUSPENSION = 60.0
"""Seconds for which a slot is left alone after its first notice; doubles with every further one."""

FORGET = 600.0
"""Seconds after the end of a suspension for which a slot's failures and notices are remembered."""


@dataclass(frozen=True)
class Suspension:
    """A slot that is left alone until a time of the protocol's clock, after so many failures and notices."""

    failures: int = 0
    notices: int = 0
    until: float = 0.0
    reason: str = ""


def after_failure(now: float, last: Suspension | None, has_reached_host: bool = True) -> Suspension:
    """What becomes of a slot in which a worker has failed now, or whose host could not be reached."""
    known = _remembered(now, last)
    failures = known.failures + 1 if has_reached_host else max(known.failures, 1)
    seconds = min(SUSPENSION * 2 ** (failures - 1), MAX_SUSPENSION)
    times = "failed" if failures == 1 else f"failed {failures} times"
    return replace(known, failures=failures, until=max(known.until, now + seconds), reason=times)


def after_notice(now: float, last: Suspension | None, notice: str) -> Suspension:
    """What becomes of a slot whose worker has been told now to give it up."""
    known = _remembered(now, last)
    notices = known.notices + 1
    seconds = min(NOTICE_SUSPENSION * 2 ** (notices - 1), MAX_SUSPENSION)
    return replace(known, notices=notices, until=max(known.until, now + seconds), reason=f"left: {notice}")


def _remembered(now: float, last: Suspension | None) -> Suspension:
    return last if last is not None and now - last.until < FORGET else Suspension()


@dataclass(frozen=True)
class WorldLimits:
    """The job's bounds: workers, and seconds that the slow are waited for."""

    min_size: int
    max_size: int
    ready_timeout: float | None = None
    """Seconds from its start to the rendezvous after which a newcomer is ended; 0: never, None: learned."""
    shortage_timeout: float = 600.0
    """Seconds for which survivors wait when fewer than `min_size` workers can run."""
    has_to_train: bool = False
    """Whether a worker that ends with exit code 0 has failed, unless a training function has returned."""
    resize: Resize = Resize.IN_PLACE
    """What a resize means to the workers."""
    unit: int = 1
    """Workers that a host has a multiple of."""
    allowed: tuple[int, ...] = ()
    """The sizes that a world may have, besides the bounds; any if there are none."""
    max_restarts: int = 0
    """How often the program may fail, where its workers are restarted all together."""
    grace: float = 0.0
    """Seconds for which a shrink waits for a checkpoint of the program."""
    end_grace: float = 0.0
    """Seconds that workers have after SIGTERM when the job ends."""
    resizes_at_once: bool = False
    """Whether no resize waits for a checkpoint of the program."""


@dataclass(frozen=True)
class Membership:
    """The state of the protocol."""

    limits: WorldLimits
    desired: tuple[Slot, ...] = ()
    workers: Mapping[int, Worker] = field(default_factory=dict)
    generation: int = 0
    size: int = 0
    """Workers that the generation in force was formed of."""
    formed_at: float = -inf
    longest_start: float | None = None
    """Seconds that newcomers have taken from their start to the rendezvous at most; None before the first."""
    is_torn: bool = False
    """Whether a member of the generation in force was lost in another way than with exit code 0."""
    stop_sent: bool = False
    suspended: Mapping[tuple[str, str], Suspension] = field(default_factory=dict)
    next_id: int = 0
    short_since: float | None = None
    shortage: object = None
    """What was told last of a shortage; None when there is none."""
    pausing: str | None = None
    """Why all workers are to leave, if they are."""
    outcome: events.Finished | None = None
    """Set once the end is decided; it is issued when the last worker has gone."""
    finished: bool = False

    def lineup(self, worker: Worker) -> tuple[Slot, ...]:
        """The slots of all with whom a worker is started."""
        return self.desired

    @property
    def world(self) -> list[Worker]:
        """The members of the generation in force that are still there, by rank."""
        members = [w for w in self.workers.values() if self.generation and w.generation == self.generation]
        return sorted((w for w in members if w.phase not in GOING), key=lambda w: w.rank)

    def wanted(self, now: float) -> tuple[Slot, ...]:
        """The desired slots that are not suspended."""
        free = (s for s in self.desired if s.key not in self.suspended or self.suspended[s.key].until <= now)
        return tuple(free)


class Turn:
    """A step of the protocol under way: the state as it is by now, and what is to be done, in this order."""

    def __init__(self, now: float, state: Membership) -> None:
        self.now = now
        self.state = state
        self.actions: list[Action] = []

    def do(self, *actions: Action) -> None:
        """Have something done."""
        self.actions += actions

    def set(self, **changes: Any) -> None:
        """Change the state."""
        self.state = replace(self.state, **changes)

    def change(self, worker: int, **changes: Any) -> None:
        """Change a worker, if there is one of that number."""
        if (known := self.state.workers.get(worker)) is not None:
            self.set(workers={**self.state.workers, worker: replace(known, **changes)})

    def let_go(self, workers: Iterable[Worker]) -> None:
        """Tell those at the rendezvous to leave; who cannot be told is ended."""
        for worker in workers:
            if worker.phase is MemberPhase.READY:
                self.do(Dismiss(worker.id, worker.saves))
                self.change(worker.id, phase=MemberPhase.DEPARTING, dismissed_at=self.now)
            elif worker.phase in (MemberPhase.STARTING, MemberPhase.ACTIVE):
                self.do(Terminate(worker.id))
                self.change(worker.id, phase=MemberPhase.ENDING)

    def decide_end(self, outcome: events.Finished) -> None:
        """Decide how the job ends; a failure overrules success, the first failure overrules later ones."""
        known = self.state.outcome
        if known is None or (known.succeeded and not outcome.succeeded):
            self.set(outcome=outcome)
