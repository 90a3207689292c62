"""What the interface takes and gives, as the description in /openapi.json has it. Times are unix seconds."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, create_model

from edt_launch.service import passwords
from edt_launch.service.database.records import SearchState, SearchWanted, TrialState
from edt_launch.service.names import TEXT, USER
from edt_launch.service.search_spec import Algorithm, Objective
from edt_launch.service.specification import Framework, Name
from edt_launch.service.states import State, Wanted

UserName = Annotated[str, StringConstraints(pattern=f"^{USER}$")]
Share = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


def _list(name: str, doc: str, **items: type[BaseModel]) -> type[BaseModel]:
    """The schema of an object whose only field is a list."""
    fields: Any = {field: (list[item], ...) for field, item in items.items()}  # type: ignore[valid-type]
    model: type[BaseModel] = create_model(name, __doc__=doc, __module__=__name__, **fields)
    return model


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Resized(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    before: int = Field(alias="from")
    after: int = Field(alias="to")


class About(BaseModel):
    """The service, and who asks."""

    version: str
    user: str
    is_admin: bool


class HostDevices(BaseModel):
    """Devices of one host."""

    host: str
    devices: list[str]


class Job(BaseModel):
    """A job. What only its owner and administrators see is null for others: all under `directory` here."""

    id: str
    owner: str
    name: str
    state: State
    wanted: Wanted
    reason: str = Field(description="Why it is in its state, or has its size.")
    note: str = Field(description="Which of its bounds count from its next start only; mostly empty.")
    min: int
    max: int
    allowed: list[int] | None
    priority: int
    weight: float
    size: int = Field(description="Workers that it has been given.")
    target: int = Field(description="Workers when all hand-overs are done.")
    share: float | None = Field(description="Its fair share, in devices.")
    submitted: float
    started: float | None
    ended: float | None
    restarts: int
    resizes: int
    losses: int = Field(description="Workers that have failed.")
    step: int | None
    total_steps: int | None
    throughput: float | None = Field(description="Optimizer steps a second.")
    eta: float | None = Field(description="Seconds until it has made all its steps.")
    hosts: list[HostDevices]
    urls: dict[str, str]
    directory: str | None
    command: list[str] | None
    environment: dict[str, str] | None
    framework: Framework | None = Field(description="How a WMLA program is run; null for any other.")
    data_dir: str | None
    exit_code: int | None
    failure: str | None
    loss: float | None


class Jobs(BaseModel):
    """A page of jobs, in the order of their submission."""

    jobs: list[Job]
    next: int | None = Field(description="What to continue `after`; null at the end.")


class Trial(BaseModel):
    """A trial of a search."""

    number: int = Field(description="Its place in the search, from 0.")
    state: TrialState
    reason: str = Field(description="Why it is in its state.")
    parameters: dict[str, float | int | str]
    budget: int = Field(description="What it may use, for `hyperband`; else 0.")
    metric: float | None
    job: str | None = Field(description="Id of its job; null as long as it has none.")
    started: float | None
    ended: float | None


class Search(BaseModel):
    """A search; only its owner and administrators see `reason`, `best`, `trials`, `spec`, `job`."""

    id: str
    name: str
    owner: str
    state: SearchState
    wanted: SearchWanted
    reason: str | None = Field(description="Why it is in its state.")
    algorithm: Algorithm
    metric: str
    objective: Objective
    total: int | None = Field(description="Trials in all, if none fails; null until it has begun.")
    counts: dict[TrialState, int] = Field(description="How many trials are in each state.")
    created: float
    started: float | None
    ended: float | None
    best: Trial | None = Field(description="The trial with the best metric so far.")


class SearchWithTrials(Search):
    """A search and its trials."""

    trials: list[Trial] | None
    spec: dict[str, Any] | None = Field(description="What is searched how.")
    job: dict[str, Any] | None = Field(description="What each trial is.")


class Searches(BaseModel):
    """A page of searches, in the order of their creation."""

    searches: list[Search]
    next: int | None = Field(description="What to continue `after`; null at the end.")


class Change(_Resized):
    """A job's number of workers would change."""

    job: str | None = Field(description="Its id; null for the job that would be submitted.")
    owner: str
    name: str
    reason: str


class Forecast(BaseModel):
    """What submitting a job would change."""

    job: Job
    changes: list[Change]


Changes = _list("Changes", "Whose number of workers would be another one.", changes=Change)


class Node(BaseModel):
    """A node of the owners' tree and its fair share, in devices."""

    node: str
    share: float


class Beginning(BaseModel):
    """When a job that waits is going to start, by what running jobs say of their ends."""

    place: int = Field(description="Among those that wait, in the order of their starts: 1 is the next one.")
    of: int = Field(description="How many wait.")
    at: float | None = Field(description="When; null: nobody can tell.")
    size: int | None = Field(description="Its workers then.")
    after: list[str] = Field(description="Jobs whose ends it waits for; none: it starts at once.")
    is_any: bool = Field(description="Whether the end of one of them will do.")
    text: str = Field(description="The same in words.")


class Why(BaseModel):
    """Why a job has its size."""

    share: float | None
    target: int
    size: int
    binding: str | None = Field(description="What keeps it from having another size.")
    path: list[Node]
    text: str
    change: str = Field(description="What would change it.")
    lines: list[str] = Field(description="All of it in a few lines, for people.")
    start: Beginning | None = Field(description="Of a job that waits.")


class Pause(BaseModel):
    """No step ran: a resize, or a start anew, of which `from` is null."""

    model_config = ConfigDict(populate_by_name=True)

    before: int | None = Field(alias="from")
    after: int = Field(alias="to")
    start: float
    end: float
    training: float = Field(description="Seconds of training before it.")
    step: int
    reason: str
    phases: dict[str, float] = Field(description="Seconds of each phase of the resize.")


class AboutValue(BaseModel):
    """A value of a job's course, before thinning."""

    lowest: float | None
    highest: float | None
    last: float | None
    missing: int = Field(description="Reports in which it was no finite number.")


class Metrics(BaseModel):
    """A job's course, thinned out to so many points, which keep the extremes: a list for each field."""

    time: list[float]
    training: list[float] = Field(description="Seconds of training, without pauses.")
    step: list[int]
    size: list[int]
    loss: list[float | None]
    throughput: list[float | None] = Field(description="Optimizer steps a second.")
    values: dict[str, list[float | None]] = Field(description="`loss`, and those asked for by `name`.")
    gaps: dict[str, list[int]] = Field(
        description="Points, by their places in the lists, at which a value was no finite number."
    )
    names: list[str] = Field(description="Values that the job has reported, the first 200.")
    about: dict[str, AboutValue]
    pauses: list[Pause] = Field(description="The latest 500.")


class LogHit(BaseModel):
    """A line of a log that has what was searched for."""

    offset: int = Field(description="Where in the log it begins, in bytes.")
    text: str = Field(description="At most 1,000 characters of it.")


class LogHits(BaseModel):
    """What a part of a log has of what was searched for."""

    hits: list[LogHit]
    next: int | None = Field(description="Where to go on, `after`; null at the end.")


class CheckedCheckpoint(BaseModel):
    """Whether a checkpoint is whole."""

    name: str
    state: Literal["whole", "damaged", "unknown"]


class Checkpoint(BaseModel):
    """A checkpoint on disk."""

    name: str
    step: int
    size: int = Field(description="Bytes.")
    time: float
    url: str
    state: Literal["complete", "damaged", "unknown"] = Field(
        description="Whether its files have the sizes that its manifest says."
    )


class File(BaseModel):
    """A file that a job has made."""

    name: str = Field(description="As in the archive of results.")
    size: int = Field(description="Bytes.")
    time: float


class Files(BaseModel):
    """What a job has made."""

    files: list[File]
    complete: bool = Field(description="Whether these are all.")


Checkpoints = _list("Checkpoints", "A job's checkpoints, oldest first.", checkpoints=Checkpoint)


class Device(BaseModel):
    """A device, and who has it."""

    name: str
    job: str | None
    is_leaving: bool = Field(description="Its worker has been told to leave and is not known to be gone.")
    retried: float | None = Field(
        default=None, description="When a worker is tried on it again after one has failed."
    )


class Host(BaseModel):
    """A machine."""

    name: str
    state: Literal["up", "down", "draining"]
    source: str = Field(description="Who knows of it.")
    reason: str = Field(description="Why it is down or draining; empty if it is up.")
    devices: list[Device]


class Hosts(BaseModel):
    """The machines."""

    hosts: list[Host]


class GpuLoad(BaseModel):
    """How a GPU is used."""

    memory: int = Field(description="MiB that are used.")
    utilization: float = Field(description="Percentage of the time in which it computes.")


class HostLoad(BaseModel):
    """How a machine is used."""

    processors: float = Field(description="Load average of the last minute, for each processor.")
    memory: float = Field(description="The part of its memory that is used, up to 1.")
    gpus: dict[str, GpuLoad] = Field(description="By the names of devices; those that answer.")


class HostNow(Host):
    """A machine, and what is known of it at present."""

    changed: float = Field(description="Since when it has been in its state, or has had its devices.")
    heard: float | None = Field(description="When its source named it last; null if that is not known.")
    jobs: int = Field(description="Jobs that have devices of it.")
    load: HostLoad | None = Field(description="Known of the service's own machine.")


HostsNow = _list("HostsNow", "The machines, and what is known of them at present.", hosts=HostNow)


class Cluster(Hosts):
    """The machines, and how their devices are used."""

    devices: int
    used: int
    free: int
    down: int
    jobs: dict[State, int] = Field(description="How many jobs are in each state.")


class OwnerShare(BaseModel):
    """A node of the owners' tree; the root's name is empty, and stands as `-` in addresses."""

    name: str
    parent: str | None
    weight: float
    guarantee: float = Field(description="Devices that it owns.")
    limit: float | None = Field(description="Devices that it may have at most; null: no limit.")
    lends: bool = Field(description="Whether others may use its guarantee while it does not.")
    policy: Literal["fair", "fifo", "priority"]
    half_life: float = Field(description="Seconds after which remembered use counts half.")
    version: str = Field(description="Of the settings above, to be sent with a change of them.")
    size: int = Field(description="Devices that jobs below it have now.")
    asks: int = Field(description="Devices that these jobs could use at most.")
    entitled: float = Field(description="The sum of their fair shares, in devices.")
    lent: int = Field(description="Devices of its guarantee that others have now, at least.")


Shares = _list("Shares", "The owners' tree.", shares=OwnerShare)


class ShareChange(_Asked):
    """What to change of a node; what is left out stays. A node that is not there is made."""

    parent: Annotated[str, StringConstraints(pattern=f"^({USER})?$")] | None = None
    weight: Annotated[float, Field(ge=1e-3, le=1e6, allow_inf_nan=False)] | None = None
    guarantee: Share | None = None
    limit: Share | None = Field(default=None, description="null: no limit.")
    lends: bool | None = None
    policy: Literal["fair", "fifo", "priority"] | None = None
    half_life: Annotated[float, Field(ge=1, le=1e9, allow_inf_nan=False)] | None = None
    version: str | None = Field(
        default=None,
        max_length=16,
        description="The `version` that was seen: the change is refused if the node has another one.",
    )


class Allocation(_Resized):
    """A job was given another number of workers, or other devices, or its workers have left some."""

    time: float
    job: str
    owner: str
    hosts: list[HostDevices]
    leaving: list[HostDevices] = Field(description="Its workers are not known to have left them.")
    lost: int = Field(description="Workers that have failed.")
    reason: str


Allocations = _list("Allocations", "Who was given which devices when, oldest first.", allocations=Allocation)


class TimelineSlot(BaseModel):
    """A device of a host: a row of the picture."""

    host: str
    device: str


class TimelineHost(BaseModel):
    """A host, and how many devices it has or had."""

    host: str
    devices: int


class TimelineJob(BaseModel):
    """A job that had devices, or was resized; `number` counts submissions, 0: it has been deleted."""

    id: str
    name: str
    owner: str
    number: int


class TimelineResize(_Resized):
    """A job was given another number of workers while it ran."""

    job: str
    time: float


class TimelineLoss(BaseModel):
    """Workers of a job have failed."""

    job: str
    time: float
    workers: int


class TimelineOwner(BaseModel):
    """What an owner's jobs have and had."""

    owner: str
    devices: int = Field(description="Devices that they have now.")
    share: float | None = Field(description="Their fair shares now, in devices.")
    hours: float = Field(description="Hours of devices that they had in the window.")
    use: list[float] = Field(description="Devices that they had on average, in 120 parts of the window.")


class TimelineChange(Allocation):
    """A change of a job's size."""

    name: str = Field(description="The job's; empty also if it has been deleted.")


class Timeline(BaseModel):
    """Who had which device when."""

    since: float
    until: float
    rows: list[TimelineSlot]
    hosts: list[TimelineHost]
    bands: list[tuple[int, float, float, float]] = Field(
        description="With `rows=hosts`: host (index), from, to, devices that were used."
    )
    jobs: list[TimelineJob]
    bars: list[tuple[int, int | None, float, float, int]] = Field(
        description="Row, job (null: several, too short to be seen), from, to, reason; as indices."
    )
    reasons: list[str] = Field(description="Why jobs were given the devices of their bars.")
    idle: list[tuple[int, float, float]] = Field(
        description="Row, from, to: a device, of a host that is up now, was free while a job waited."
    )
    resizes: list[TimelineResize]
    losses: list[TimelineLoss]
    owners: list[TimelineOwner]
    changes: list[TimelineChange] = Field(description="The latest five, oldest first.")
    complete: bool = Field(description="Whether this is all of it; if not, the oldest is missing.")


class NewUser(_Asked):
    """Somebody to be let in."""

    name: UserName
    is_admin: bool = False


class UserAccount(BaseModel):
    """Somebody who may use the service."""

    name: str
    is_admin: bool
    created: float


class UserWithToken(UserAccount):
    """A new user, and a first token; only this answer contains it."""

    token: str
    expires: float | None = Field(description="When the token ends; null: never.")


Users = _list("Users", "Everybody who may use the service.", users=UserAccount)


class AuditedChange(BaseModel):
    """Somebody has changed something."""

    number: int
    time: float
    user: str
    method: str
    path: str = Field(description="Of the request, and what it was about where that does not say it.")


Audit = _list("Audit", "Changes, the newest first.", changes=AuditedChange)


class NewPassword(_Asked):
    """A user's password for WMLA's interfaces."""

    password: Annotated[str, StringConstraints(pattern=f"^{TEXT}$", max_length=passwords.MOST)] = Field(
        description="As long as the service's `least_password` wants it."
    )
    revoke_tokens: bool = Field(
        default=False, description="Revoke the user's tokens, too, but for the one that asks."
    )


class NewToken(_Asked):
    """A token to be made."""

    name: Annotated[Name, Field(max_length=64, description="What it is for.")] = ""
    expires: Annotated[float, Field(ge=0, le=1e12)] | None = Field(
        default=None,
        description="When it opens nothing any more; null, or later than the token that asks: as that one.",
    )
    user: UserName | None = Field(default=None, description="Whose; for administrators. Your own by default.")
    scope: Literal["all", "read"] = Field(
        default="all", description="What it may do: everything that its user may, or only read (GET, HEAD)."
    )


class Token(BaseModel):
    """A token, without what is secret."""

    id: str
    name: str
    user: str
    created: float
    expires: float | None
    parent: str | None = Field(description="The token that it was made with, and is revoked with.")
    scope: Literal["all", "read"]
    used: float | None = Field(description="When it was last used, to a minute; null: never.")


class TokenWithSecret(Token):
    """A new token; only this answer contains it."""

    token: str


class LogonLink(BaseModel):
    """Where a browser can log on; only this answer contains it."""

    path: str = Field(description="To be appended to the service's address.")
    expires: float


Tokens = _list("Tokens", "Tokens that have not been revoked.", tokens=Token)


class Health(BaseModel):
    """Whether the service works."""

    status: Literal["ok"]


Event = dict[str, Any]
"""An event of a job, as its `edt-launch` has written it."""
