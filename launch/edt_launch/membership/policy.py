"""The resize policies: how each moves the world towards the one that is wanted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from edt_launch.membership import restart_all, step
from edt_launch.membership.generations import Generations
from edt_launch.membership.members import Membership, WorldLimits
from edt_launch.membership.protocol import Action, Event, Resize

Step = Callable[[float, Membership, Event], tuple[Membership, list[Action]]]


@dataclass(frozen=True)
class Policy:
    """How workers are resized.

    Attributes:
        state: the class of the protocol's state.
        step: what to do, given what has happened.
        forks: whether workers may be forked from a warm server.
        restarts: whether a job whose workers were all lost may be started again by the launcher.
        is_watched: whether workers say what they are doing, so that one that hangs is found.
    """

    state: type[Membership]
    step: Step
    forks: bool
    restarts: bool
    is_watched: bool

    def begin(self, limits: WorldLimits, first_worker: int) -> Membership:
        """The state in which nothing has happened."""
        return self.state(limits, next_id=first_worker)


POLICIES: Mapping[Resize, Policy] = {
    Resize.FIXED: Policy(Membership, step.step, forks=False, restarts=False, is_watched=True),
    Resize.IN_PLACE: Policy(Membership, step.step, forks=True, restarts=True, is_watched=True),
    Resize.RESTART_ALL: Policy(Generations, restart_all.step, forks=True, restarts=False, is_watched=False),
}
