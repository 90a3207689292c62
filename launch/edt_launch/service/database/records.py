"""What the stores give and take: one frozen dataclass a table, its fields the table's columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from edt_launch.service.states import ENDED, HAS_LAUNCHER, State, Wanted

Devices = tuple[str, ...]
Held = tuple[tuple[str, Devices], ...]
"""Hosts and their devices, in order: ``(("node1", ("0", "3")), ("node2", ("5",)))``."""

BOUNDS = "bounds"
"""Which of a job's notes says the least and the most workers that its `edt-launch` was started with."""

RESIZE_COST = 5.0
"""Seconds that a resize is taken to cost while a job has not been resized."""


@dataclass(frozen=True)
class UserRecord:
    """Somebody with jobs of their own."""

    name: str
    is_admin: bool = False
    created: float = 0.0


@dataclass(frozen=True)
class TokenRecord:
    """A token; only its hash is kept.

    Attributes:
        is_session: whether logging on with a password gave it.
        parent: id of the token that it was made with; None if a password, or the service itself, gave it.
    """

    id: str
    hash: str
    user: str
    name: str
    created: float
    expires: float | None = None
    revoked: float | None = None
    is_session: bool = False
    parent: str | None = None


@dataclass(frozen=True)
class ShareRecord:
    """A node of the owners' tree; the fields are those of `allocator.model.Owner`. The root's name is ""."""

    name: str
    parent: str | None = ""
    weight: float = 1.0
    guarantee: float = 0.0
    limit: float = inf
    lends: bool = True
    policy: str = "fair"
    half_life: float = 86400.0
    service: float = 0.0
    entitlement: float = 0.0
    usage_at: float = 0.0


@dataclass(frozen=True)
class HostRecord:
    """A machine.

    Attributes:
        is_up: whether its source lists it.
        source: who knows of it.
        reason: why it is draining; it stays when the host is down.
    """

    name: str
    devices: Devices
    is_up: bool = True
    is_draining: bool = False
    source: str = ""
    reason: str = ""
    changed: float = 0.0

    @property
    def state(self) -> str:
        """`up`, `down` or `draining`."""
        if not self.is_up:
            return "down"
        return "draining" if self.is_draining else "up"

    @property
    def why(self) -> str:
        """Why it is in its state; empty if it is up."""
        return {"down": "its source does not list it any more", "draining": self.reason}.get(self.state, "")


@dataclass(frozen=True)
class JobRecord:
    """A job: first what its user wants (wishes), then what is (facts).

    Attributes:
        number: counts submissions; 0 before it is stored.
        id: unique, `home.JOB_ID`.
        owner: name of its user.
        command: words of the command that each worker runs.
        directory: where it runs, inside the submitted code.
        allowed: numbers of workers it can run with, ascending; None for all from min to max.
        priority: its tier, higher ones are served first.
        environment: variables that its processes get besides.
        checkpoint_interval, max_restarts: options of `edt-launch`; None for its defaults.
        framework: how a WMLA program is run; None for any other.
        data_dir: its DATA_DIR; None for the default.
        wanted: what its owner wants of it now.
        idempotency_key: of its submission; None without one.
        fingerprint: of the specification, to tell a repeated submission from another one.
        reason: why it is in its state, or has its size, for people.
        why: the allocator's reason in full, as JSON: binding, share, target, path, text, change.
        exit_code, failure: how it ended, and the text of the first failure.
        submitted, started, ended: when; `started` the first time.
        waiting_since: since when it has wanted to run and has not; None while it runs.
        running_since: since when it has run without a break.
        resized: when its number of workers last changed by choice.
        size: workers that its allocation file gives it now.
        target: workers when all hand-overs are done.
        share: its real share, in devices.
        generation: of its allocation file.
        held: what that file says.
        leaving: devices of workers that have been told to leave and are not known to be gone.
        launcher_pid, launcher_started: process number and start time of its `edt-launch`.
        restarts, resizes: how often.
        step, total_steps, loss: latest progress.
        throughput: optimizer steps a second, at its present size.
        service, entitlement, usage_at: remembered usage.
        resize_cost: seconds that a resize costs, as learned.
        speedup: points (workers, speed), as learned.
        notes: what the loop remembers of it, for its own eyes.
    """

    id: str
    owner: str
    command: tuple[str, ...]
    min: int
    max: int
    submitted: float
    number: int = 0
    name: str = ""
    directory: str = "."
    allowed: tuple[int, ...] | None = None
    priority: int = 0
    weight: float = 1.0
    environment: Mapping[str, str] = field(default_factory=dict)
    checkpoint_interval: float | None = None
    max_restarts: int | None = None
    framework: str | None = None
    data_dir: str | None = None
    wanted: Wanted = Wanted.RUN
    idempotency_key: str | None = None
    fingerprint: str = ""
    state: State = State.QUEUED
    reason: str = "waits for the next decision"
    why: Mapping[str, Any] | None = None
    exit_code: int | None = None
    failure: str | None = None
    started: float | None = None
    ended: float | None = None
    waiting_since: float | None = None
    running_since: float | None = None
    resized: float | None = None
    size: int = 0
    target: int = 0
    share: float | None = None
    generation: int = 0
    held: Held = ()
    leaving: Held = ()
    launcher_pid: int | None = None
    launcher_started: float | None = None
    restarts: int = 0
    resizes: int = 0
    step: int | None = None
    total_steps: int | None = None
    loss: float | None = None
    throughput: float | None = None
    service: float = 0.0
    entitlement: float = 0.0
    usage_at: float = 0.0
    resize_cost: float = RESIZE_COST
    speedup: tuple[tuple[int, float], ...] = ()
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def bounds(self) -> tuple[int, int] | None:
        """Least and most workers that its `edt-launch` was started with, and keeps to; None without one."""
        if self.state not in HAS_LAUNCHER or BOUNDS not in self.notes:
            return None
        least, most = self.notes[BOUNDS]
        return least, most

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.state in ENDED


WISHES = frozenset({"name", "min", "max", "priority", "weight"})
"""Fields of a job that its owner may change."""

FACTS = frozenset(
    {
        *("reason", "why", "exit_code", "failure", "started", "ended", "waiting_since", "running_since"),
        *("resized", "size", "target", "share", "generation", "held", "leaving"),
        *("launcher_pid", "launcher_started", "restarts", "resizes"),
        *("step", "total_steps", "loss", "throughput"),
        *("service", "entitlement", "usage_at", "resize_cost", "speedup", "notes"),
    }
)
"""Fields of a job that the loop may write; `state` changes by `Jobs.move` alone."""


@dataclass(frozen=True)
class TransitionRecord:
    """A job went from one state to another; `before` is None when it was submitted."""

    job: str
    time: float
    before: State | None
    after: State
    reason: str
    number: int = 0


@dataclass(frozen=True)
class AllocationRecord:
    """A job was given another number of workers, or other devices."""

    job: str
    owner: str
    time: float
    before: int
    after: int
    devices: Held
    reason: str
    number: int = 0


@dataclass(frozen=True)
class Page:
    """A part of a listing; `next` is what to continue after, None at the end."""

    jobs: Sequence[JobRecord]
    next: int | None


@dataclass(frozen=True)
class ExecRecord:
    """What WMLA's clients call a job.

    Attributes:
        number: counts submissions of such clients.
        id: in `/execs`.
        driver: of its driver, which Conductor's part knows it by.
        app: of its application.
        args: the argument string that it was submitted with.
        group: the instance group, `sigName`; None if it was submitted in the manner of 2.x.
        job: id of the job; None until that has been written down.
    """

    number: int
    id: str
    driver: str
    app: str
    args: str
    group: str | None = None
    job: str | None = None
