"""The observed state that the loop decides from, and its actions. Frozen; times are unix seconds."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from edt_launch.allocator.model import Cluster, Job, Memory, Options, Plan
from edt_launch.core.control_protocol import Request
from edt_launch.service.cluster.records import AllocationRecord, HostRecord, ShareRecord
from edt_launch.service.jobs.loop.device_grant import DeviceGrant
from edt_launch.service.jobs.loop.progress import JobProgress, LauncherRun
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import State

SLOW_REMARK = (
    "reading its events takes long: it takes turns with other such jobs, so what is shown of it may be late"
)

BEHIND_REMARK = "not all of its events have been read yet, so what is shown of it may be late"


@dataclass(frozen=True)
class ObservedLauncher:
    """What is known of a job's `edt-launch`.

    Attributes:
        is_alive: whether one runs; nobody can start another one as long as it does.
        identity: process number and start time, as the one started last has written them down; None
            if it has not got so far.
        exit_code: of the one started last, if it has ended, and has written it down or was started by this
            process. Negative for a signal.
        message: how it ended, if it has written that down.
        has_leftovers: whether processes of the job are still there though no launcher is.
        said: what it printed last, if it ended before it had begun.
        accepted: id of the last request that it has acknowledged to this process; None for none.
    """

    is_alive: bool = False
    identity: tuple[int, float] | None = None
    exit_code: int | None = None
    has_leftovers: bool = False
    said: str = ""
    message: str = ""
    accepted: str | None = None


@dataclass(frozen=True)
class ObservedJob:
    """A job: its row, its files, its process.

    Attributes:
        trouble: why these could not be read, empty if they could; it is left alone then, and keeps what it
            uses.
        is_behind: whether not all of its events have been read yet; how it ended is not known then.
        is_slow: whether the last look at it took long, so that it takes turns with other such jobs.
        computed: when a GPU of it was seen computing last; None if its GPUs cannot be seen.
    """

    record: JobRecord
    grant: DeviceGrant = field(default_factory=DeviceGrant)
    progress: JobProgress = field(default_factory=JobProgress)
    launcher: ObservedLauncher = field(default_factory=ObservedLauncher)
    trouble: str = ""
    is_behind: bool = False
    is_slow: bool = False
    computed: float | None = None

    @property
    def remarks(self) -> dict[str, str]:
        """The columns of its row that say what is wrong with its files."""
        behind = BEHIND_REMARK if self.is_behind else ""
        return {"trouble": self.trouble, "delay": SLOW_REMARK if self.is_slow else behind}

    @property
    def is_hidden(self) -> bool:
        """Whether its files could not be read."""
        return bool(self.trouble)

    @property
    def can_save(self) -> bool:
        """Whether what it has done outlives its workers, as far as is known."""
        return self.record.can_save or self.progress.can_save

    @property
    def run(self) -> LauncherRun | None:
        """What its events say of the launcher started last; None if they do not speak of that one."""
        run = self.progress.run
        return run if run is not None and self.launcher.identity == (run.pid, run.started) else None


@dataclass(frozen=True)
class AllocationRound:
    """What the allocator decided from, with what jobs hold since then, and its plan."""

    cluster: Cluster
    jobs: tuple[Job, ...]
    plan: Plan


@dataclass(frozen=True)
class ObservedState:
    """Everything that a step looks at.

    Attributes:
        jobs: all that have not ended.
        shares: the owners' tree; owners of jobs that are not in it are added below the root.
        memory: of the allocator's last plan.
        last: round of the last step; None for the first.
        protected: seconds for which a started job keeps its minimum.
        idle_timeout: seconds after which a job that does nothing keeps its minimum only; 0: never.
        ended: states of jobs that have ended and that others wait for; None for one that was deleted.
    """

    jobs: tuple[ObservedJob, ...] = ()
    hosts: tuple[HostRecord, ...] = ()
    shares: tuple[ShareRecord, ...] = ()
    memory: Memory = field(default_factory=Memory)
    last: AllocationRound | None = None
    options: Options = field(default_factory=Options)
    protected: float = 300.0
    idle_timeout: float = 0.0
    ended: Mapping[str, State | None] = field(default_factory=dict)


# What to do, in the order given.


@dataclass(frozen=True)
class Prepare:
    """Make sure that nothing is left that says who the last launcher was: a new one will be started."""

    job: str


@dataclass(frozen=True)
class WriteFile:
    """Replace the allocation file of a job."""

    job: str
    grant: DeviceGrant


@dataclass(frozen=True)
class Move:
    """Bring a job to another state, with the columns of its row that change by that."""

    job: str
    to: State
    reason: str
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Note:
    """Write columns of a job's row."""

    job: str
    fields: Mapping[str, Any]


@dataclass(frozen=True)
class Launch:
    """Start the launcher of a job, unless one is alive."""

    record: JobRecord

    @property
    def job(self) -> str:  # noqa: D102
        return self.record.id


@dataclass(frozen=True)
class Send:
    """Send a request to the launcher of a job, which answers later."""

    job: str
    request: Request


@dataclass(frozen=True)
class Kill:
    """Kill the launcher of a job, which does not end."""

    job: str


@dataclass(frozen=True)
class Sweep:
    """End what is left of a job whose launcher is gone."""

    job: str


@dataclass(frozen=True)
class Remember:
    """Keep a change of an allocation."""

    change: AllocationRecord

    @property
    def job(self) -> str:  # noqa: D102
        return self.change.job


Action = Prepare | WriteFile | Move | Note | Launch | Send | Kill | Sweep | Remember


@dataclass(frozen=True)
class Decided:
    """What a step has decided.

    Attributes:
        round: of the allocator; `last` for the next step. Remembered usage is in it.
        again_at: when to look again at the latest though nothing has happened; None: not for that.
    """

    actions: tuple[Action, ...]
    round: AllocationRound
    again_at: float | None = None
