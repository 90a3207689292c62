"""What the allocator decides from, and what it decides. Frozen, without clocks, files or sockets.

All times are seconds of one clock of the caller's choice, the same in every call.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from enum import Enum
from math import inf
from typing import Any, TypeVar

T = TypeVar("T", "Memory", "Move")


class Policy(Enum):
    """How the children of a node share what it has."""

    FAIR = "fair"
    FIFO = "fifo"
    PRIORITY = "priority"


class Preemption(Enum):
    """What a tier may take from lower ones, and what may be taken from a job that runs."""

    NONE = "none"
    TO_MIN = "to min"
    TO_ZERO = "to zero"


@dataclass(frozen=True, slots=True)
class Host:
    """A machine.

    Attributes:
        name: unique.
        devices: names of its devices, in order.
        is_up: a host that is down has lost whatever ran on it.
        is_draining: takes no new workers, and loses those it has as soon as others can take their place.
    """

    name: str
    devices: tuple[str, ...]
    is_up: bool = True
    is_draining: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Remembered use.

    Attributes:
        service, entitlement: GPU-seconds served, and that would have been due, decayed up to `at`.
        at: up to when.
        attained: of a job, seconds for which it has had its minimum, by which jobs take turns; the more it
            weighs, the more slowly they pass (see `usage.remember`). Of an owner, GPU-seconds served.
    """

    service: float = 0.0
    entitlement: float = 0.0
    at: float = 0.0
    attained: float = 0.0


@dataclass(frozen=True)
class Owner:
    """A node of the owners' tree: a department, a user. Jobs hang below owners.

    Attributes:
        name: unique; the root's is "".
        parent: name of the node above; None for the root.
        weight: share of the surplus, relative to its siblings, above 0.
        guarantee: GPUs that it owns and gets back when it asks for them.
        limit: GPUs that it may have at most.
        budget: GPU-seconds that it may use in all; once it has, it may have no GPU.
        lends: whether others may use the guarantee while it does not.
        policy: among its children.
        half_life: seconds after which remembered use counts half.
        usage: what is remembered.
    """

    name: str
    parent: str | None = ""
    weight: float = 1.0
    guarantee: float = 0.0
    limit: float = inf
    lends: bool = True
    policy: Policy = Policy.FAIR
    half_life: float = 86400.0
    usage: Usage = field(default_factory=Usage)
    budget: float = inf

    @property
    def is_spent(self) -> bool:
        """Whether it has used its budget."""
        return self.usage.attained >= self.budget


@dataclass(frozen=True, slots=True)
class HostDevices:
    """Devices of one host, in the order of the local ranks that use them."""

    host: str
    devices: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """A job that wants to run, or runs.

    Attributes:
        id: unique.
        owner: name of its owner.
        min, max: workers that it needs at least, and can use at most.
        submitted: when.
        weight: share of its owner's surplus, relative to the owner's other jobs.
        tier: priority tier; higher ones are served first.
        allowed: the numbers of workers that it can run with, ascending; None for every one from min to max.
        resize_cost: seconds of its time that a resize costs.
        start_cost: the same of a start.
        speedup: points (workers, speed) relative to one worker, each number of workers once; empty for
            linear.
        step_time: seconds of a step with one worker, as far as is known; None while it is not.
        protected: seconds for which it keeps its minimum at least once it has started, and for which no other
            job is suspended for it once it was suspended itself.
        held: what its allocation file says now, the host of the coordinator first; empty unless it runs.
        leaving: devices whose workers have been told to leave and are not known to be gone.
        started: since when it has run without a break; None unless it runs.
        resized: when its devices last changed by choice while it ran; None if never.
        waiting_since: since when it has wanted to run and has not; None if it runs.
        usage: what is remembered of it.
        preemption: what may be taken from it while it runs, whoever asks: all of its devices; those above its
            minimum; or none, and then it does not move either.
    """

    id: str
    owner: str
    min: int
    max: int
    submitted: float
    weight: float = 1.0
    tier: int = 0
    allowed: tuple[int, ...] | None = None
    resize_cost: float = 5.0
    start_cost: float = 5.0
    speedup: tuple[tuple[int, float], ...] = ()
    step_time: float | None = None
    protected: float = 300.0
    held: tuple[HostDevices, ...] = ()
    leaving: tuple[HostDevices, ...] = ()
    started: float | None = None
    resized: float | None = None
    waiting_since: float | None = None
    usage: Usage = field(default_factory=Usage)
    preemption: Preemption = Preemption.TO_ZERO

    @property
    def is_fixed(self) -> bool:
        """Whether it keeps each device that it holds."""
        return self.preemption is Preemption.NONE and bool(self.held)

    @property
    def size(self) -> int:
        """Workers that it has now."""
        return sum(len(host.devices) for host in self.held)


@dataclass(frozen=True)
class Options:
    """The allocator's constants; each is defined in the module that uses it.

    Attributes:
        preemption: what a tier may take from lower ones.
        turn: seconds of its minimum by which a running job has to be ahead of a suspended one, at least, to
            give it its place.
        turn_costs: the same in multiples of what a start costs.
        turn_growth: the same as part of what the running job has had of its minimum.
        protected_costs: multiple of what a start costs for which a started job keeps its minimum at least.
        longest_wait: seconds after which a waiting job gets a reservation, where the minimums of others fit;
            if it has run, twice its turn where that is longer; as many times that as they fill what there is.
        imbalance: GPUs that an owner's quota may be off by.
        imbalance_time: seconds for which it may.
        least_change: part of a job's size by which an optional resize must change it.
        tolerance: factor by which a job's size may be off its share, among the jobs of one owner.
        patience_costs: multiple of its resize cost for which a job may be behind by more than `least_change`.
        resize_interval: seconds between two optional resizes of a job at least.
        resize_interval_costs: the same in multiples of its resize cost.
        settling: seconds of history below which remembered use hardly counts.
        by_speedup: whether an owner's surplus goes where it speeds its jobs up most, where that is known, and
            no job is offered numbers of workers that were measured not to help it.

    Raises:
        ValueError: a figure is below 0, or not a number, or `tolerance` is below 1.
    """

    preemption: Preemption = Preemption.TO_MIN
    turn: float = 900.0
    turn_costs: float = 20.0
    turn_growth: float = 1 / 3
    protected_costs: float = 10.0
    longest_wait: float = 600.0
    imbalance: float = 1.0
    imbalance_time: float = 3.0
    least_change: float = 0.25
    tolerance: float = 2.0
    patience_costs: float = 60.0
    resize_interval: float = 30.0
    resize_interval_costs: float = 10.0
    settling: float = 1800.0
    by_speedup: bool = True

    def __post_init__(self) -> None:
        for item in fields(self):
            least = 1.0 if item.name == "tolerance" else 0.0
            value = getattr(self, item.name)
            if isinstance(value, float | int) and not value >= least:
                raise ValueError(f"the option {item.name} is {value}: it has to be {least:g} at least")


@dataclass(frozen=True, slots=True)
class Move:
    """A job moves onto fewer hosts.

    Attributes:
        hosts: onto which.
        cost: seconds of jobs' time that it costs.
        partner: id of the job that it exchanges devices with, if any.
    """

    hosts: tuple[str, ...]
    cost: float
    partner: str | None = None


@dataclass(frozen=True)
class Memory:
    """What one decision leaves for the next: callers keep it and hand it back as it is.

    Attributes:
        imbalanced_since: since when an owner has had another number than its due, by its name.
        entered: virtual time at which each job has entered, by its id.
        clock: virtual time at which newcomers enter, which never goes back.
        reserved: id of the job that devices are being kept for, if any.
        pinned: ids of the jobs that owners' guarantees had room for, in the order in which it was found.
        owner_steps: by how many quarters of a power of two an owner's weight is raised, by its name.
        job_steps: the same of jobs, by their ids.
        pending: sizes that jobs are to have as soon as devices have been handed over, by their ids.
        behind_since: since when a job has been behind its share, by its id.
        due: whole numbers by fairness of jobs that are to keep another size for now, by their ids.
        suspended: when jobs were suspended for others, by their ids, while they rest.
        moves: jobs that are moving onto fewer hosts, by their ids.
        busy_at: when something but the hosts of such jobs was last to change; None if nothing ever was.
    """

    imbalanced_since: Mapping[str, float] = field(default_factory=dict)
    entered: Mapping[str, float] = field(default_factory=dict)
    clock: float = 0.0
    reserved: str | None = None
    pinned: tuple[str, ...] = ()
    owner_steps: Mapping[str, int] = field(default_factory=dict)
    job_steps: Mapping[str, int] = field(default_factory=dict)
    pending: Mapping[str, int] = field(default_factory=dict)
    behind_since: Mapping[str, float] = field(default_factory=dict)
    due: Mapping[str, int] = field(default_factory=dict)
    suspended: Mapping[str, float] = field(default_factory=dict)
    moves: Mapping[str, Move] = field(default_factory=dict)
    busy_at: float | None = None


@dataclass(frozen=True)
class Cluster:
    """The machines, who shares them, and how.

    Attributes:
        hosts: all of them, also those that are down.
        owners: the tree, the root included, in any order.
        options: the constants.
        memory: of the last plan.
    """

    hosts: tuple[Host, ...]
    owners: tuple[Owner, ...] = (Owner("", None),)
    options: Options = field(default_factory=Options)
    memory: Memory = field(default_factory=Memory)

    @property
    def size(self) -> int:
        """Devices on hosts that are up and not draining."""
        return sum(len(host.devices) for host in self.hosts if host.is_up and not host.is_draining)


class Binding(Enum):
    """What keeps a job from having another size."""

    MIN = "min"
    MAX = "max"
    SPEED = "speed"
    SHARE = "share"
    LIMIT = "limit"
    TIER = "tier"
    STABILITY = "stability"
    HAND_OVER = "hand-over"
    ADMISSION = "admission"
    FRAGMENTS = "fragments"
    KEPT = "kept"


@dataclass(frozen=True)
class Reason:
    """Why a job has the size that it has.

    Attributes:
        binding: what binds.
        share: its real share, GPUs.
        target: its whole number when all hand-overs are done.
        path: the real share at each node from the root down to its owner, as (name, GPUs).
        text: the decision in one sentence, for people.
        change: what would change it, in one sentence; may be empty.
    """

    binding: Binding
    share: float
    target: int
    path: tuple[tuple[str, float], ...]
    text: str
    change: str = ""


@dataclass(frozen=True)
class Plan:
    """What is to be done.

    Attributes:
        assignments: what each job's allocation file is to say, by its id; empty: it does not run. Contains no
            device that another job holds or that a leaving worker may still use.
        targets: workers of each job when all hand-overs are done.
        memory: for the next decision.
        again_at: when to decide again at the latest though nothing has happened; None: not for that. Where
            jobs wait for the turns of others to end, decide every few seconds besides.
    """

    assignments: Mapping[str, tuple[HostDevices, ...]]
    targets: Mapping[str, int]
    memory: Memory
    again_at: float | None = None


def dump(memory: Memory) -> dict[str, Any]:
    """The memory as dictionaries, strings and numbers, fit for JSON."""
    return asdict(memory)


def load(values: Mapping[str, Any]) -> Memory:
    """The memory that `dump` has made values of; what is unknown is left out, what is missing is empty."""
    memory = _known(Memory, values)
    moves = {job: _known(Move, move) for job, move in values.get("moves", {}).items()}
    moves = {job: replace(move, hosts=tuple(move.hosts)) for job, move in moves.items()}
    return replace(memory, pinned=tuple(memory.pinned), moves=moves)  # JSON knows lists only


def _known(kind: type[T], values: Mapping[str, Any]) -> T:
    """One of a kind of dataclass from those values that are fields of it."""
    names = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in names})
