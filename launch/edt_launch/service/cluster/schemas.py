"""What the interface gives and takes of machines, shares and who had which devices, as in `schemas`."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

from edt_launch.service.http.schemas import Body, listing
from edt_launch.service.jobs.schemas import Change, HostDevices, Resized
from edt_launch.service.jobs.states import State
from edt_launch.service.names import USER

Share = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


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
    staying: list[str] = Field(
        default=[], description="After draining it: of each job that stays until it ends, what it would lose."
    )


class DrainChanges(BaseModel):
    """What draining a host, or having it back, would change."""

    changes: list[Change] = Field(description="Whose number of workers would be another one.")
    staying: list[str] = Field(description="Of each job that would stay until it ends, what it would lose.")


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


HostsNow = listing("HostsNow", "The machines, and what is known of them at present.", hosts=HostNow)


class Cluster(Hosts):
    """The machines, and how their devices are used."""

    devices: int
    used: int
    free: int
    down: int
    jobs: dict[State, int] = Field(description="How many jobs are in each state.")
    waiting: str = Field(description="What the pool is waiting for to have more devices; empty if nothing.")


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
    budget: float | None = Field(description="Hours of devices that jobs below it may use; null: any number.")
    used: float = Field(description="Hours of devices that they have used so far.")
    version: str = Field(description="Of the settings above, to be sent with a change of them.")
    size: int = Field(description="Devices that jobs below it have now.")
    asks: int = Field(description="Devices that these jobs could use at most.")
    entitled: float = Field(description="The sum of their fair shares, in devices.")
    lent: int = Field(description="Devices of its guarantee that others have now, at least.")


Shares = listing("Shares", "The owners' tree.", shares=OwnerShare)


class ShareChange(Body):
    """What to change of a node; what is left out stays. A node that is not there is made."""

    parent: Annotated[str, StringConstraints(pattern=f"^({USER})?$")] | None = None
    weight: Annotated[float, Field(ge=1e-3, le=1e6, allow_inf_nan=False)] | None = None
    guarantee: Share | None = None
    limit: Share | None = Field(default=None, description="null: no limit.")
    lends: bool | None = None
    policy: Literal["fair", "fifo", "priority"] | None = None
    half_life: Annotated[float, Field(ge=1, le=1e9, allow_inf_nan=False)] | None = None
    budget: Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)] | None = Field(
        default=None, description="null: any number."
    )
    version: str | None = Field(
        default=None,
        max_length=16,
        description="The `version` that was seen, `new` for none: with another one, the change is refused.",
    )


class Allocation(Resized):
    """A job was given another number of workers, or other devices, or its workers have left some."""

    time: float
    job: str
    owner: str
    hosts: list[HostDevices]
    leaving: list[HostDevices] = Field(description="Its workers are not known to have left them.")
    lost: int = Field(description="Workers that have failed.")
    reason: str


Allocations = listing(
    "Allocations", "Who was given which devices when, oldest first.", allocations=Allocation
)


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


class TimelineResize(Resized):
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
