"""What happens to a job: a class for each kind of event.

`event_codec` reads and writes them, and refuses numbers outside the bounds of their types. The table in
docs/reference/events.md is made from the docstrings.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from edt_launch.core.history.allocation_events import AllocatedHost as AllocatedHost
from edt_launch.core.history.allocation_events import AllocationAccepted as AllocationAccepted
from edt_launch.core.history.allocation_events import AllocationRejected as AllocationRejected
from edt_launch.core.history.allocation_events import Desired as Desired
from edt_launch.core.history.allocation_events import Following as Following
from edt_launch.core.history.allocation_events import Usable as Usable
from edt_launch.core.history.event import KINDS as KINDS
from edt_launch.core.history.event import Event as Event
from edt_launch.core.history.exit_codes import exit_text
from edt_launch.core.history.worker_events import Checkpointed as Checkpointed
from edt_launch.core.history.worker_events import CheckpointFailed as CheckpointFailed
from edt_launch.core.history.worker_events import CheckpointSkipped as CheckpointSkipped
from edt_launch.core.history.worker_events import Progress as Progress
from edt_launch.core.history.worker_events import Reported as Reported
from edt_launch.core.history.worker_events import Restored as Restored
from edt_launch.core.history.worker_events import Resumed as Resumed
from edt_launch.core.history.worker_events import Standby as Standby
from edt_launch.core.history.worker_events import event_of as event_of
from edt_messages.records import Number, Seconds, Serial

ExitCode = Annotated[int, (-(2**31), 2**31)]


@dataclass(frozen=True)
class WorkerSlot:
    """A worker and its slot; `device` is None where no devices are bound."""

    worker: Serial
    host: str
    slot: Number
    device: str | None


@dataclass(frozen=True)
class _OfWorker(WorkerSlot, Event):
    """Something that has happened to a worker."""


# The launcher.


@dataclass(frozen=True)
class Begun(Event):
    """`edt-launch` has started.

    Attributes:
        started: of its process, in seconds since the machine was started.
    """

    pid: Number
    started: Seconds
    min_np: Number
    max_np: Number


@dataclass(frozen=True)
class Ended(Event):
    """`edt-launch` ends. No process of the job is left on this machine.

    On other hosts there may be workers that were not `released`.

    Attributes:
        exit_code: of `edt-launch`.
        message: how the job ended; after success empty, unless no worker came to train in some slots.
        worker_exit_code: of the worker whose failure ended the job, as a shell has it; null if none did.
    """

    exit_code: Number
    message: str = ""
    worker_exit_code: Number | None = None


@dataclass(frozen=True)
class Driver(Event):
    """The process that drives a program has started. It has workers started when it wants them."""

    pid: Number = 0
    id: str = ""


@dataclass(frozen=True)
class Launched(Event):
    """The workers are about to be started. Those of a run before have been ended.

    Attributes:
        pid: of `edt-launch`, or of `horovodrun`.
    """

    command: tuple[str, ...] = ()
    pid: Number = 0
    interface: str = ""


@dataclass(frozen=True)
class Restarting(Event):
    """The workers are to be started again after a failure.

    Attributes:
        reason: why the last run ended.
        delay: seconds until then, or less if the allocation changes.
        restart: its number, from 1.
        of: how many restarts are allowed.
        has_checkpoint: whether there is one to go on from.
    """

    reason: str
    delay: Seconds
    restart: Number
    of: Number
    has_checkpoint: bool


# Workers.


@dataclass(frozen=True)
class WarmServer(Event):
    """The process of a host that workers are forked from is ready.

    Attributes:
        seconds: that importing everything took.
        imports: names of the packages.
        private: bytes of its own memory; null if unknown.
        refused: why workers cannot be forked from it; null if they can.
    """

    host: str
    pid: Number
    seconds: Seconds
    imports: tuple[str, ...]
    private: Serial | None = None
    refused: str | None = None


@dataclass(frozen=True)
class Started(_OfWorker):
    """A worker is being started. There is one event for each of its devices."""

    rank: Number


@dataclass(frozen=True)
class Ready(Event):
    """A worker has reached its elastic function, and waits at the rendezvous."""

    worker: Serial
    pid: Number


@dataclass(frozen=True)
class SlowStart(Event):
    """The start of newcomers takes long. This is reported once for each.

    Attributes:
        workers: `worker`, `host`, `slot` and `device` of each newcomer.
        seconds: since their start.
        longest: seconds that the start of any other took; null if none is ready yet.
        waited: seconds after their start for which others wait for them; null for no limit.
        limit: seconds after their start at which they are ended; null for never.
    """

    workers: tuple[WorkerSlot, ...]
    seconds: Seconds
    longest: Seconds | None
    waited: Seconds | None
    limit: Seconds | None


@dataclass(frozen=True)
class Leaving(_OfWorker):
    """A worker has been told from outside to give up its slot, by a signal for instance."""

    rank: Number
    reason: str | None


@dataclass(frozen=True)
class Left(Event):
    """A worker that was not needed any more is gone."""

    worker: Serial


@dataclass(frozen=True)
class Ending(Event):
    """A worker is being ended.

    Attributes:
        signal: SIGTERM, after which it has the job's grace for an end of its own, or SIGKILL.
    """

    worker: Serial
    signal: str = "SIGKILL"


@dataclass(frozen=True)
class Failed(_OfWorker):
    """A worker died on its own, or was killed because it hung.

    Attributes:
        exit_code: of its process.
        signal: name of the signal that ended it; null if none did.
        reason: why it had to be killed; empty if it died on its own.
        retry_after: seconds after which its slot is tried again; null if it is not.
    """

    rank: Number
    exit_code: ExitCode
    signal: str | None = None
    reason: str = ""
    retry_after: Seconds | None = None

    @property
    def how_it_ended(self) -> str:
        """How the worker ended, in words."""
        return self.reason or exit_text(self.exit_code)


@dataclass(frozen=True)
class Released(_OfWorker):
    """A worker's process is known to be gone, for whatever reason."""


@dataclass(frozen=True)
class Lost(_OfWorker):
    """A worker is given up, but its process may live on, because the way to its host is cut for instance.

    `released` follows if the process is found to be gone.
    """


@dataclass(frozen=True)
class HostUnreachable(Event):
    """A host is lost, the way to it is cut, or no agent can be started there. `launched` ends that, too.

    Attributes:
        reason: in words.
    """

    host: str
    reason: str


@dataclass(frozen=True)
class HostReachable(Event):
    """An agent runs on a host that was unreachable."""

    host: str


@dataclass(frozen=True)
class MissingWorker:
    """A slot without a worker that could be in the next world, and why."""

    host: str
    slot: Number
    reason: str
    retry_after: Seconds | None = None


@dataclass(frozen=True)
class Waiting(Event):
    """Training stands still because fewer workers can run than are needed. Reported again when that changes.

    Attributes:
        have: workers that could be in the next world.
        need: workers that have to be.
        seconds: left until the job is given up.
        allocated: slots of the allocation.
        missing: `host`, `slot`, `reason` and `retry_after` of each slot without such a worker.
    """

    have: Number
    need: Number
    seconds: Seconds
    allocated: Number
    missing: tuple[MissingWorker, ...]


# Training.


@dataclass(frozen=True)
class ResizeDue(Event):
    """A resize waits for a checkpoint of the program, where all workers are replaced.

    Attributes:
        size: number of workers.
        wanted: number of workers after it.
        limit: seconds for which it waits at most; null for no limit.
    """

    size: Number
    wanted: Number
    limit: Seconds | None = None


@dataclass(frozen=True)
class Stopping(Event):
    """The workers are told to stop after a step that they agree on: the next world is ready to be formed."""

    generation: Serial


@dataclass(frozen=True)
class World(Event):
    """The workers of a generation train together.

    Attributes:
        size: number of workers.
        previous_size: of the world before; null for the first one.
        ranks: of the workers by their serial numbers; empty if unknown.
        reason: why it was formed.
    """

    generation: Serial
    size: Number
    previous_size: Number | None = None
    ranks: Mapping[Serial, Number] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class Usage(Event):
    """What all workers use together, as their hosts measure it every 10 s.

    Attributes:
        processors: seconds of processor time a second.
        memory: bytes of resident memory; what workers share counts for each of them.
        gpus: percents of the time in which their GPUs compute, on average over the hosts; null without any.
        gpu_memory: bytes that are used of their GPUs.
        gpu_power: watts that their GPUs draw.
    """

    processors: Seconds
    memory: Serial
    gpus: Seconds | None
    gpu_memory: Serial | None
    gpu_power: Seconds | None


@dataclass(frozen=True)
class Finished(Event):
    """The last worker of a run is gone.

    Attributes:
        exit_code: 0 if the training function has returned everywhere, else 1.
        reason: why it ended.
        left: whether all workers that had the state were told to leave.
        aborted: whether the job was told to end.
    """

    exit_code: Number
    reason: str = ""
    left: bool = False
    aborted: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether the training function has returned everywhere."""
        return self.exit_code == 0
