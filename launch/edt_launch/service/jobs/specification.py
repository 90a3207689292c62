"""What a user says of a job: its fields, their bounds and defaults."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)

from edt_launch.core.job_sizes import Sizes
from edt_launch.core.system.reserved_variables import is_reserved
from edt_launch.launcher.programs import kinds
from edt_launch.service.app.home import JOB_ID
from edt_launch.service.http.schemas import UnixTime
from edt_launch.service.names import MAX_NAME, PLAIN, TAG, TEXT, VARIABLE

MAX_WORKERS = 2**20
MAX_PRIORITY = 1000
MAX_TEXT = 2**17
"""Characters of a word or of a variable."""
MAX_START = 3 * 2**15
"""Bytes of a command and of the variables beside it. Linux takes 128 KiB in one word or variable; a launcher
may put all of them into one word, and PATH and others are added."""

Count = Annotated[int, Field(ge=1, le=MAX_WORKERS)]
Priority = Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)]
Weight = Annotated[float, Field(ge=1e-3, le=1e6, allow_inf_nan=False)]
Name = Annotated[str, StringConstraints(pattern=f"^{PLAIN}$", max_length=MAX_NAME)]
Text = Annotated[str, StringConstraints(pattern=f"^{TEXT}$", max_length=MAX_TEXT)]
Line = Annotated[str, StringConstraints(pattern=f"^{PLAIN}$", max_length=4096)]
JobId = Annotated[str, StringConstraints(pattern=f"^{JOB_ID}$")]
TimeLimit = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Variable = Annotated[str, StringConstraints(pattern=f"^{VARIABLE}$")]
Tags = Annotated[
    list[Annotated[str, StringConstraints(pattern=f"^{TAG}$")]],
    Field(max_length=32),
    AfterValidator(lambda tags: sorted(set(tags))),
]
Comment = Annotated[str, StringConstraints(pattern=f"^{PLAIN}$", max_length=1000)]


def _known(framework: str) -> str:
    if framework not in kinds.frameworks():
        raise ValueError(f"{framework!r:.40} is unknown: give one of {', '.join(kinds.frameworks())}")
    return str(framework)


FrameworkName = Annotated[
    str, WithJsonSchema({"type": "string", "enum": list(kinds.frameworks()), "title": "Framework"})
]
"""How a program is run that is no plain command, as it was when its job was submitted."""

Framework = Annotated[FrameworkName, AfterValidator(_known)]
"""The same, known to this version."""


class JobSpec(BaseModel):
    """A job to submit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    command: Annotated[
        list[Text],
        Field(min_length=1, max_length=4096, description="Words of the command that each worker runs."),
    ]
    name: Annotated[Name, Field(description="What to call it.")] = ""
    tags: Annotated[Tags, Field(description="Words to find it by.")] = []
    comment: Annotated[Comment, Field(description="A remark on it.")] = ""
    path: Annotated[
        Line | None, Field(description="A folder on the service's machine to copy, instead of an archive.")
    ] = None
    code_of: Annotated[
        str | None,
        Field(pattern=f"^{JOB_ID}$", description="A job whose submitted files to copy instead."),
    ] = None
    checkpoint: Annotated[
        str | None,
        Field(
            pattern="^step-[0-9]{8,18}$",
            description="A checkpoint of the job `code_of`, by its name: the new job goes on from it.",
        ),
    ] = None
    directory: Annotated[
        Line, Field(description="Where the command runs: a folder inside the submitted code.")
    ] = "."
    min: Annotated[Count, Field(description="Minimum number of workers.")] = 1
    max: Annotated[Count | None, Field(description="Workers that it can use at most; `min` by default.")] = (
        None
    )
    priority: Annotated[Priority, Field(description="Higher ones are served first.")] = 0
    weight: Annotated[
        Weight, Field(description="Share of its owner's share, relative to their other jobs.")
    ] = 1.0
    allowed: Annotated[
        list[Count] | None,
        Field(
            min_length=1, max_length=1024, description="Numbers of workers that it can run with, if not all."
        ),
    ] = None
    environment: Annotated[
        dict[Variable, Text], Field(max_length=1024, description="Variables that its processes get.")
    ] = {}
    checkpoint_interval: Annotated[
        float | None, Field(ge=0, le=1e9, description="Seconds between two checkpoints at least.")
    ] = None
    max_restarts: Annotated[
        int | None,
        Field(ge=0, le=10**6, description="How often it may be started again after it lost all workers."),
    ] = None
    grace: Annotated[
        float, Field(ge=0, le=86400, description="Seconds from SIGTERM to SIGKILL when it is told to end.")
    ] = 30.0
    warm_start: Annotated[
        bool, Field(description="Fork workers from a process that has already imported torch and Horovod.")
    ] = True
    restartable: Annotated[
        bool, Field(description="Whether it may be ended and begin again, though it cannot save its work.")
    ] = False
    preemptible: Annotated[
        bool, Field(description="Whether others may take all of its devices once it runs.")
    ] = True
    time_limit: Annotated[
        TimeLimit, Field(description="Seconds that it may run, after which it is ended; 0: any number.")
    ] = 0.0
    begin: Annotated[UnixTime, Field(description="When it may start at the earliest, unix time.")] = 0.0
    after: Annotated[
        list[JobId],
        Field(max_length=1024, description="Jobs that have to succeed before it starts, by their ids."),
    ] = []
    array_id: Annotated[
        str,
        Field(
            pattern="^([a-z0-9]{8,64})?$", description="Any text that the jobs of an array have in common."
        ),
    ] = ""
    array_index: Annotated[
        int | None, Field(ge=0, le=10**9, description="Its number in the array: EDT_ARRAY_INDEX.")
    ] = None
    array_limit: Annotated[
        int | None, Field(ge=1, le=10**6, description="How many jobs of the array may run at a time.")
    ] = None
    framework: Annotated[
        Framework | None,
        Field(description="How its program is run; `command` is its script and arguments, or torchrun's."),
    ] = None
    data_dir: Annotated[Line | None, Field(description="DATA_DIR of its program: a folder on the hosts.")] = (
        None
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        sizes = self.sizes
        check_sizes(sizes.min, sizes.min if sizes.max is None else sizes.max, sizes.allowed)
        if self.checkpoint is not None and self.code_of is None:
            raise ValueError("checkpoint: give the job that has it, as code_of")
        if self.directory.startswith("/") or ".." in self.directory.split("/"):
            raise ValueError("directory: give a folder inside the code, without '..'")
        if bool(self.array_id) != (self.array_index is not None) or (self.array_limit and not self.array_id):
            raise ValueError(
                "array_id: give array_id and array_index together, and array_limit only with them"
            )
        check_start(self.command, self.environment)
        if taken := sorted(filter(is_reserved, self.environment)):
            raise ValueError(f"environment: EDT sets {', '.join(taken)} itself: leave that out")
        if not self.command[0]:
            raise ValueError("command: the first word is empty")
        check_framework(self.framework, self.command, self.min, self.most)
        if self.data_dir is not None:
            if self.framework is None:
                raise ValueError("data_dir: give a framework, too; other programs have their own arguments")
            if not self.data_dir.startswith("/"):
                raise ValueError(f"data_dir: {self.data_dir!r} is not absolute: give a path from /")
        return self

    @property
    def most(self) -> int:
        """Workers that it can use at most."""
        return self.min if self.max is None else self.max

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The numbers of workers that it can run with, ascending; None for all from min to max."""
        return None if self.allowed is None else tuple(sorted(set(self.allowed)))

    @property
    def sizes(self) -> Sizes:
        """The numbers of workers that its program can have.

        Raises:
            ValueError: it can have none that the user wants.
        """
        return kinds.sizes(self.framework, self.command, Sizes(self.min, self.max, self.numbers))

    def fingerprint(self, code: str) -> str:
        """Tells a repeated submission from another one; `code` is a digest of the code that was sent."""
        # Versions without these fields have stored fingerprints, too.
        unused = {name for name in ("tags", "comment") if not getattr(self, name)}
        return hashlib.sha256(f"{code} {self.model_dump_json(exclude=unused)}".encode()).hexdigest()


class JobChange(BaseModel):
    """What may change while a job lives, and `ANNOTATIONS` also afterwards; what is left out stays."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name | None = None
    tags: Tags | None = None
    comment: Comment | None = None
    min: Count | None = None
    max: Count | None = None
    priority: Priority | None = None
    weight: Weight | None = None
    time_limit: TimeLimit | None = None


ANNOTATIONS = frozenset({"name", "tags", "comment"})
"""Fields of a `JobChange` that say something of a job and do nothing to it."""


def check_start(command: Sequence[str], environment: Mapping[str, str]) -> None:
    """Raise `ValueError` unless processes can be started with a command and variables of that size."""
    sizes = {f"environment: {name}": _size(f"{name}={value}") for name, value in environment.items()}
    words = {f"command: word {number}": _size(word) for number, word in enumerate(command, start=1)}
    total = sum(sizes.values()) + sum(words.values())
    if total > MAX_START:
        largest, size = max((sizes | words).items(), key=lambda entry: entry[1])
        raise ValueError(
            f"{largest} has {size:,} bytes; command and environment have {total:,} bytes in all, and may have"
            f" {MAX_START:,}: put it into a file of the submitted code"
        )


def _size(text: str) -> int:
    """Bytes that it takes when a process is started, with the null byte behind it."""
    return len(text.encode(errors="surrogatepass")) + 1


def check_framework(framework: str | None, command: Sequence[str], least: int, most: int) -> None:
    """Raise `ValueError` unless a program of that framework can be run like that."""
    if framework is not None:
        kinds.named(framework).check(framework, command, least, most)


def check_sizes(least: int, most: int, allowed: list[int] | tuple[int, ...] | None) -> None:
    """Raise `ValueError` unless a job can have some size."""
    if most < least:
        raise ValueError(f"max: {most} is less than min, {least}")
    if allowed is not None and not any(least <= number <= most for number in allowed):
        raise ValueError(f"allowed: no number from min, {least}, to max, {most}")
