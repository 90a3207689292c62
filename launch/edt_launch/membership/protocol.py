"""What the membership protocol speaks of: workers in their slots, what happens to them, and what to do.

`edt_launch.membership.step` is the function from the one to the other; see there for the theory.
"""

from dataclasses import dataclass
from enum import Enum


class Phase(Enum):
    """Where a worker stands; the table above says what each means."""

    STARTING = "starting"
    READY = "ready"
    ACTIVE = "active"
    DONE = "done"
    DEPARTING = "departing"
    ENDING = "ending"


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
    phase: Phase
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


# Events.


@dataclass(frozen=True)
class Desired:
    """The job has these slots, of the allocation of `generation`; None if unknown."""

    slots: tuple[Slot, ...]
    generation: int | None = None


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

    Attributes:
        worker: the worker.
        exit_code: how it ended; of one that is given up, that of a worker that was killed.
        is_gone: whether its process is known to be gone.
    """

    worker: int
    exit_code: int
    is_gone: bool = True


@dataclass(frozen=True)
class Abort:
    """Somebody wants the job to end now."""

    reason: str


@dataclass(frozen=True)
class Pause:
    """Somebody wants all workers to leave; the job is to go on from its state another time."""

    reason: str


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


Event = Desired | Ready | Synced | Done | Leaving | Hung | Exited | Abort | Pause | Tick

# Actions.


@dataclass(frozen=True)
class Start:
    """Start a worker's process."""

    worker: Worker


@dataclass(frozen=True)
class Stop:
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
    """End a worker's process; `at_once` if it cannot be expected to do so when asked."""

    worker: int
    at_once: bool = False


@dataclass(frozen=True)
class Cut:
    """Tell these members of the world of `generation` that it is broken, wherever they wait in it."""

    workers: tuple[int, ...]
    generation: int


@dataclass(frozen=True)
class Failed:
    """A worker died on its own, or had to be killed because it did not get on.

    Attributes:
        retry_after: seconds after which its slot is tried again; None if it is not,
            because the job ends with it or training is over.
        reason: why it had to be killed; empty if it died on its own.
    """

    worker: Worker
    exit_code: int
    retry_after: float | None = None
    reason: str = ""


@dataclass(frozen=True)
class Noticed:
    """A worker's wish to leave has been taken in."""

    worker: Worker


@dataclass(frozen=True)
class Missing:
    """A slot without a worker that could be in the next world, and why.

    Attributes:
        retry_after: seconds after which it is tried again; None if that is not
            a matter of time.
    """

    slot: Slot
    reason: str
    retry_after: float | None = None


@dataclass(frozen=True)
class Waiting:
    """Training stands still because too few workers can run.

    Attributes:
        have: workers that could be in the next world.
        need: workers that have to be.
        seconds: left until the job is given up.
        allocated: slots that the allocation shows.
        missing: those of them that have no such worker.
    """

    have: int
    need: int
    seconds: float
    allocated: int
    missing: tuple[Missing, ...]


@dataclass(frozen=True)
class Late:
    """The start of newcomers takes long. Told of each once.

    Attributes:
        workers: the newcomers.
        seconds: since their start.
        longest: seconds that any took so far; None if none has got ready yet.
        waited: seconds after their start for which others wait for them; None for no limit.
        limit: seconds after their start at which they are ended; None for never.
    """

    workers: tuple[Worker, ...]
    seconds: float
    longest: float | None
    waited: float | None
    limit: float | None


@dataclass(frozen=True)
class Left:
    """A worker that was not needed any more is gone."""

    worker: Worker


@dataclass(frozen=True)
class Finish:
    """Everything has ended.

    Attributes:
        succeeded: whether the training function has returned everywhere.
        reason: why it has ended, in words.
        left: whether all that had the state were told to leave, and so can be had again.
        aborted: whether it was told to end, and not by what happened to workers.
    """

    succeeded: bool
    reason: str
    left: bool = False
    aborted: bool = False


Action = Start | Stop | Assign | Dismiss | Terminate | Cut | Failed | Noticed | Waiting | Late | Left | Finish
