"""What the interface gives of jobs, as the description in /openapi.json has it. Times are unix seconds."""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from edt_launch.service.http.schemas import listing
from edt_launch.service.jobs.specification import FrameworkName
from edt_launch.service.jobs.states import ENDED, State, Wanted


class Resized(BaseModel):
    """A change of a number of workers, which JSON calls `from` and `to`."""

    model_config = ConfigDict(populate_by_name=True)

    before: int = Field(alias="from")
    after: int = Field(alias="to")


class HostDevices(BaseModel):
    """Devices of one host."""

    host: str
    devices: list[str]


class JobForAll(BaseModel):
    """What everybody sees of a job."""

    id: str
    owner: str
    name: str
    tags: list[str] = Field(description="Words to find it by.")
    comment: str = Field(description="A remark on it.")
    state: State
    wanted: Wanted
    reason: str = Field(description="Why it is in its state, or has its size.")
    note: str = Field(
        description="Bounds that count from its next start only; hosts that it cannot reach. Mostly empty."
    )
    min: int
    max: int
    allowed: list[int] | None
    priority: int
    weight: float
    size: int = Field(description="Workers that it has been given.")
    target: int = Field(description="Workers when all hand-overs are done.")
    share: float | None = Field(description="Its fair share, in devices.")
    preemptible: bool = Field(description="Whether others may take all of its devices once it runs.")
    can_save: bool = Field(
        description="Whether it has come to an elastic function or has written a checkpoint; "
        "before that nothing is taken from it, unless it is `restartable`."
    )
    restartable: bool = Field(description="Whether it may begin again though it cannot save its work.")
    time_limit: float = Field(description="Seconds that it may run; 0: any number.")
    array_id: str = Field(description="What the jobs of its array have in common; empty without one.")
    array_index: int | None
    array_limit: int | None = Field(description="How many jobs of its array may run at a time.")
    begin: float = Field(description="When it may start at the earliest; 0: at once.")
    after: list[str] = Field(description="Jobs for whose success it waits.")
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

    @property
    def has_ended(self) -> bool:
        """Whether nothing will happen to it any more."""
        return self.state in ENDED

    @property
    def since(self) -> float:
        """When it ended, or else started, or else was submitted."""
        return self.ended or self.started or self.submitted


class Job(JobForAll):
    """A job. What only its owner and administrators see is null for others: all under `directory` here."""

    directory: str | None
    command: list[str] | None
    environment: dict[str, str] | None
    framework: FrameworkName | None = Field(description="How a WMLA program is run; null for any other.")
    data_dir: str | None
    code_digest: str | None = Field(
        description="SHA-256 of the archive of its code; empty if it was copied from a folder."
    )
    exit_code: int | None = Field(description="Of its program; of `edt-launch` where no worker failed.")
    failure: str | None
    loss: float | None


class Jobs(BaseModel):
    """A page of jobs, in the order of their submission."""

    jobs: list[Job]
    next: int | None = Field(description="What to continue `after`; null at the end.")


class Change(Resized):
    """A job's number of workers would change."""

    job: str | None = Field(description="Its id; null for the job that would be submitted.")
    owner: str
    name: str
    reason: str


class Forecast(BaseModel):
    """What submitting a job would change."""

    job: Job
    changes: list[Change]


Changes = listing("Changes", "Whose number of workers would be another one.", changes=Change)


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


Event = dict[str, Any]
"""An event of a job, as its `edt-launch` has written it."""
