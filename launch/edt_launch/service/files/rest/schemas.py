"""What the interface gives of what jobs report, print and save, as in `schemas`."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from edt_launch.service.http.schemas import listing


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


Checkpoints = listing("Checkpoints", "A job's checkpoints, oldest first.", checkpoints=Checkpoint)
