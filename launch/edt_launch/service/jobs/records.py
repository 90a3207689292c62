"""Jobs, their transitions and names: one frozen dataclass a table, its fields the table's columns.

A field of a job is written down here alone: `db.tables` makes a column of it, and `schemas.Job` shows it if
that has a line of its name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any

from edt_launch.service.db.types import Big, Held, Str16, Str64, Str128
from edt_launch.service.jobs.states import ENDED, State, Wanted

RESIZE_COST = 5.0
"""Seconds that a resize, and a start, are taken to cost while nothing is known of a job's own."""


@dataclass(frozen=True)
class SubmittedFields:
    """What a job's owner says of it: its desired state.

    Attributes:
        number: counts submissions; 0 before it is stored.
        tags, comment: words to find it by, and a remark on it; everybody sees both.
        directory: where the command runs, inside the submitted code.
        allowed: numbers of workers it can run with, ascending; None for all from min to max.
        priority: its tier, higher ones are served first.
        environment: variables that its processes get besides.
        checkpoint_interval, max_restarts: options of `edt-launch`; None for its defaults.
        grace: seconds from SIGTERM to SIGKILL when it is told to end.
        warm_start: whether its workers are forked from a process that has imported what they need.
        restartable: whether it may begin again from the start: its user says so.
        preemptible: whether it may be suspended once it runs.
        time_limit: seconds that it may run; 0: any number.
        begin: when it may be started at the earliest; 0: at once.
        array_id, array_index, array_limit: its array, its number there, and how many jobs of that may run at
            a time; empty and None without an array, None also for any number.
        framework, data_dir: of a WMLA program; None for any other, and for the default.
        code_digest: SHA-256 of its code's archive; empty if it was copied from a folder.
        fingerprint: of the specification, to tell a repeated submission from another one.
        state: where it stands; it changes by `Jobs.move` alone.
    """

    id: Str16
    owner: Str64
    command: tuple[str, ...]
    min: int
    max: int
    submitted: float
    number: int = 0
    name: Str128 = ""
    tags: tuple[str, ...] = ()
    comment: str = ""
    directory: str = "."
    allowed: tuple[int, ...] | None = None
    priority: int = 0
    weight: float = 1.0
    environment: Mapping[str, str] = field(default_factory=dict)
    checkpoint_interval: float | None = None
    max_restarts: int | None = None
    grace: float = 30.0
    warm_start: bool = True
    restartable: bool = False
    preemptible: bool = True
    time_limit: float = 0.0
    begin: float = 0.0
    array_id: Str64 = ""
    array_index: int | None = None
    array_limit: int | None = None
    framework: Str16 | None = None
    data_dir: str | None = None
    wanted: Wanted = Wanted.RUN
    idempotency_key: Str128 | None = None
    code_digest: Str64 = ""
    fingerprint: Str64 = ""
    state: State = State.QUEUED


@dataclass(frozen=True)
class LauncherFields:
    """What a job has while it has a launcher; without one, the defaults.

    Attributes:
        running_since: since when it has run without a break.
        size: workers that its allocation file gives it now.
        target: workers when all hand-overs are done.
        held: what its allocation file says.
        leaving: devices of workers that have been told to leave and are not known to be gone.
        launcher_pid, launcher_started: process number and start time of its `edt-launch`.
        bounds: least and most workers that its `edt-launch` was started with, and keeps to.
        throughput: optimizer steps a second, at its present size.
    """

    running_since: float | None = None
    size: int = 0
    target: int = 0
    held: Held = ()
    leaving: Held = ()
    launcher_pid: int | None = None
    launcher_started: float | None = None
    bounds: tuple[int, int] | None = None
    throughput: float | None = None


@dataclass(frozen=True)
class ProgressFields:
    """What changes all the time while a job runs, and is shown, as `throughput` is.

    Attributes:
        losses: workers that have failed.
    """

    restarts: int = 0
    resizes: int = 0
    losses: int = 0
    step: Big | None = None
    total_steps: Big | None = None
    loss: float | None = None


@dataclass(frozen=True)
class JobRecord(ProgressFields, LauncherFields, SubmittedFields):
    """A job: first its desired state, then its observed state, which the loop writes.

    Attributes:
        reason: why it is in its state, or has its size, for people.
        after: jobs that have to succeed before it starts, and are not known to have succeeded.
        may_lose: whether somebody has agreed that what its present workers have done is lost.
        can_save: whether what it has done outlives its workers, as far as is known.
        why: the allocator's reason in full, as JSON: binding, share, target, path, text, change.
        failure: the text of the first failure.
        started: when it was started the first time.
        waiting_since: since when it has wanted to run and has not; None while it runs.
        ran: seconds that it ran before `running_since`.
        resized: when its number of workers last changed by choice.
        share: its real share, in devices.
        generation: of its allocation file.
        service, entitlement, usage_at: remembered usage.
        attained: seconds of its minimum that it has had, by which it takes turns.
        resize_cost, start_cost: seconds that a resize and a start cost, as learned.
        speedup: points (workers, speed), as learned.
        suspended: hosts and devices whose workers have failed, and when they are tried again.
        unreachable: hosts that it cannot reach, since when, and why.
        trouble: why the service cannot read its files; empty if it can.
        delay: why what is shown of it may be late; empty if it is not.
        is_array_full: whether enough jobs of its array run.
        granted_at: when its allocation file was last written.
        asked, signalled: when it was first and last asked to go, by the present state.
        launchers_lost: how often its launcher was killed.
        starts_anew: how often it began again because it could not save its work.
    """

    reason: str = "waits for the next decision"
    after: tuple[str, ...] = ()
    may_lose: bool = False
    can_save: bool = False
    why: Mapping[str, Any] | None = None
    exit_code: int | None = None
    failure: str | None = None
    started: float | None = None
    ended: float | None = None
    waiting_since: float | None = None
    ran: float = 0.0
    resized: float | None = None
    share: float | None = None
    generation: Big = 0
    service: float = 0.0
    entitlement: float = 0.0
    usage_at: float = 0.0
    attained: float = 0.0
    resize_cost: float = RESIZE_COST
    start_cost: float = RESIZE_COST
    speedup: tuple[tuple[int, float], ...] = ()
    suspended: tuple[tuple[str, str, float], ...] = ()
    unreachable: tuple[tuple[str, float, str], ...] = ()
    trouble: str = ""
    delay: str = ""
    is_array_full: bool = False
    granted_at: float | None = None
    asked: float | None = None
    signalled: float | None = None
    launchers_lost: int = 0
    starts_anew: int = 0

    @property
    def would_lose(self) -> bool:
        """Whether its work would be lost with its workers, and nobody has agreed to that."""
        is_safe = self.can_save or self.restartable or self.may_lose
        return self.state in (State.STARTING, State.RUNNING) and not is_safe

    def is_held(self, now: float) -> bool:
        """Whether it waits for a time or for other jobs, whatever devices there are."""
        return self.state is State.QUEUED and bool(self.after or now < self.begin)

    @property
    def limit_reached_at(self) -> float:
        """When it will have run for its time limit, if it runs without a break; infinite without a limit."""
        if not self.time_limit:
            return inf
        return (self.running_since or 0.0) + self.time_limit - self.ran

    @property
    def remark(self) -> str:
        """What is wrong with its files; empty if nothing is."""
        return self.trouble or self.delay

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.state in ENDED


@dataclass(frozen=True)
class HolderRecord:
    """Which devices a job has that has not ended; the fields are those of `JobRecord`."""

    id: str
    owner: str
    name: str
    number: int
    state: State
    submitted: float
    waiting_since: float | None
    held: Held
    leaving: Held
    share: float | None = None

    @property
    def devices(self) -> int:
        """How many devices it has, those that it is leaving among them."""
        return sum(len(names) for _, names in (*self.held, *self.leaving))


@dataclass(frozen=True)
class NamedJob:
    """What pictures say of a job; the fields are those of `JobRecord`."""

    name: str
    number: int


PROGRESS = (*(field.name for field in fields(ProgressFields)), "throughput")
"""Observed fields that change all the time while a job runs, and are shown."""

WITHOUT_LAUNCHER: Mapping[str, Any] = {field.name: field.default for field in fields(LauncherFields)}
"""Columns of a job without a launcher."""

OBSERVED = frozenset(field.name for field in fields(JobRecord)) - {
    field.name for field in fields(SubmittedFields)
}
"""Fields of a job that the loop may write."""


@dataclass(frozen=True)
class Page:
    """A part of a listing; `next` is what to continue after, None at the end."""

    jobs: Sequence[JobRecord]
    next: int | None


@dataclass(frozen=True)
class TransitionRecord:
    """A job went from one state to another; `before` is None when it was submitted."""

    job: Str16
    time: float
    before: State | None
    after: State
    reason: str
    number: int = 0


@dataclass(frozen=True)
class ExecRecord:
    """What WMLA's clients call a job.

    Attributes:
        number: counts submissions of such clients.
        id, driver, app: in `/execs`, to Conductor's part, and of its application.
        args: the argument string that it was submitted with.
        group: the instance group, `sigName`; None if it was submitted in the manner of 2.x.
        job: id of the job; None until that has been written down.
    """

    number: int
    id: Str128
    driver: Str64
    app: Str128
    args: str
    group: Str128 | None = None
    job: Str16 | None = None
