"""What the membership protocol speaks of: workers in their slots, what happens to them, and what to do.

`edt_launch.membership.step` is the function from the one to the other; see there for the theory.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from edt_launch.core.history import events


class MemberPhase(Enum):
    """Where a worker stands; the table above says what each means."""

    STARTING = "starting"
    READY = "ready"
    ACTIVE = "active"
    DONE = "done"
    DEPARTING = "departing"
    ENDING = "ending"


class Resize(Enum):
    """What a change of the allocation means to the workers of a program."""

    FIXED = "fixed"
    """Nothing: they run together, and end with the first that fails."""
    IN_PLACE = "in place"
    """They stop after a step, and train on as another world."""
    RESTART_ALL = "restart all"
    """All are started anew, as another world, and go on from a checkpoint of their own."""


class HostLoss(Enum):
    """How an agent was lost, or the way to it, or what makes a host of no use."""

    LOST = "lost"
    """The host had an agent."""
    UNREACHED = "unreached"
    """None has ever answered."""
    UNFIT = "unfit"
    """The host lacks something without which the worker cannot begin, such as the script."""


@dataclass(frozen=True)
class Slot:
    """A place for one worker: the `index`-th of its host, on a device if the allocation lists them."""

    host: str
    index: int
    device: str | None = None

    @property
    def key(self) -> tuple[str, str]:
        """What makes it the same slot in the next allocation: the device, or else its number."""
        return self.host, self.device if self.device is not None else f"#{self.index}"


@dataclass(frozen=True)
class Worker:
    """One worker process."""

    id: int
    slot: Slot
    phase: MemberPhase
    started_at: float
    rank: int
    generation: int = 0
    """The newest generation it was assigned to; 0 before its first."""
    progress: int = 0
    has_state: bool = False
    """Whether others can get the state from it: the first world's members, and whoever has received it."""
    dismissed_at: float | None = None
    """When it was told to leave."""
    saves: bool = False
    """Whether it was told to save the state, which nobody else has."""
    notice: str | None = None
    """Why it has asked to leave, if it has."""
    is_late: bool = False
    """Whether it has been told that its start takes long."""
    attempt: int = 0
    """How often the job had failed when it was started."""

    @property
    def where(self) -> tuple[int, str, int, str | None]:
        """Its serial number, host, slot and device: the first fields of many events."""
        return self.id, self.slot.host, self.slot.index, self.slot.device


# Events.


@dataclass(frozen=True)
class Desired:
    """The job has these slots, of the allocation of `generation`; None if unknown.

    If `at_once`, workers in other slots are ended: they may not come to the end of a step.
    """

    slots: tuple[Slot, ...]
    generation: int | None = None
    at_once: bool = False


@dataclass(frozen=True)
class Ready:
    """A worker is outside any world and waits; `progress` is how far its state is."""

    worker: int
    progress: int


@dataclass(frozen=True)
class Synced:
    """A worker has the state of its world."""

    worker: int


@dataclass(frozen=True)
class Done:
    """A worker's elastic function has returned."""

    worker: int


@dataclass(frozen=True)
class Leaving:
    """A worker has been told from outside, by a signal say, to give up its slot."""

    worker: int
    reason: str


@dataclass(frozen=True)
class Hung:
    """A worker does not answer or does not get on."""

    worker: int
    reason: str


@dataclass(frozen=True)
class Exited:
    """A worker's process has ended, or has to be given up because nobody can say what has become of it.

    One that is given up, and may not be gone, has the exit code of a worker that was killed.
    """

    worker: int
    exit_code: int
    is_gone: bool = True
    host_loss: HostLoss | None = None
    """Set if it was the agent that ended, or the way to it, or if the worker could not begin."""


@dataclass(frozen=True)
class Saving:
    """A worker writes a checkpoint of its own; or not any more."""

    worker: int
    is_saving: bool


@dataclass(frozen=True)
class Held:
    """A worker has been told of a resize, and waits where nothing would be lost by it."""

    worker: int


@dataclass(frozen=True)
class Abort:
    """Somebody wants the job to end now."""

    reason: str


@dataclass(frozen=True)
class Deadlock:
    """The workers wait for one another, and none will ever get on."""

    reason: str


@dataclass(frozen=True)
class PauseWanted:
    """Somebody wants all workers to leave; the job is to go on from its state another time."""

    reason: str


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Event = (
    Desired
    | Ready
    | Synced
    | Done
    | Leaving
    | Hung
    | Exited
    | Saving
    | Held
    | Abort
    | Deadlock
    | PauseWanted
    | Tick
)

# Actions.


@dataclass(frozen=True)
class Start:
    """Start a worker's process."""

    worker: Worker


@dataclass(frozen=True)
class StopWorkers:
    """Tell these workers that the membership of `generation` is ready."""

    workers: tuple[int, ...]
    generation: int


@dataclass(frozen=True)
class Assignment:
    """A worker's place in a world, in Horovod's terms."""

    worker: int
    rank: int
    size: int
    local_rank: int
    local_size: int
    cross_rank: int
    cross_size: int
    host: str


@dataclass(frozen=True)
class Assign:
    """Form the world of `generation` from these assignments."""

    generation: int
    assignments: tuple[Assignment, ...]
    previous_size: int | None
    reason: str


@dataclass(frozen=True)
class Dismiss:
    """Tell a worker at the rendezvous to leave; if it `saves`, it writes its state, which nobody else has."""

    worker: int
    saves: bool = False


@dataclass(frozen=True)
class Terminate:
    """End a worker's process; `at_once` if it cannot be expected to do so when asked.

    With a `grace` it gets SIGTERM, and SIGKILL after so many seconds.
    """

    worker: int
    at_once: bool = False
    grace: float | None = None


@dataclass(frozen=True)
class Open:
    """The world of `generation` is in force: nobody of an older one is left."""

    generation: int
    ranks: Mapping[int, int]
    previous_size: int | None
    reason: str


@dataclass(frozen=True)
class Admit:
    """Let a worker into the world of `generation`, which it was started for."""

    worker: int
    generation: int


@dataclass(frozen=True)
class Cut:
    """Tell these members of the world of `generation` that it is broken, wherever they wait in it."""

    workers: tuple[int, ...]
    generation: int


Action = Start | StopWorkers | Assign | Open | Admit | Dismiss | Terminate | Cut | events.Event
"""What to do. An event is to be reported."""
