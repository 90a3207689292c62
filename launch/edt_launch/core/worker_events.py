"""What the workers report about their job, and what all events have in common.

Workers send these as messages, or append them to a file. `events` has all kinds of events.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

Number = Annotated[int, (0, 2**31)]
Serial = Annotated[int, (0, 2**53)]
Seconds = Annotated[float, (0, 2**53)]
"""Numbers, with their least and one that is too large: what a job writes can be stored."""

Value = float | int | str | bool
"""What scripts may report."""


@dataclass(frozen=True)
class Event:
    """Something that has happened to a job.

    Attributes:
        time: unix seconds.
    """

    kind: ClassVar[str]
    time: Seconds = field(default=0.0, kw_only=True)

    def __init_subclass__(cls) -> None:
        cls.kind = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
        if not cls.__name__.startswith("_"):
            KINDS[cls.kind] = cls


KINDS: dict[str, type[Event]] = {}
"""All kinds, in the order of their classes."""


@dataclass(frozen=True)
class Standby(Event):
    """What a newcomer cost until it got its slot.

    Attributes:
        waited: seconds.
        processor: seconds of processor time.
        private: bytes of its own memory; null if unknown.
    """

    worker: Serial
    waited: Seconds
    processor: Seconds
    private: Serial | None = None


@dataclass(frozen=True)
class Resumed(Event):
    """The first step after a change of the world is done.

    Attributes:
        from_: number of workers before.
        to: number of workers after.
        pause: seconds in which nothing was trained.
        phases: seconds of each phase of the resize.
    """

    generation: Serial
    from_: Number | None
    to: Number
    pause: Seconds
    phases: Mapping[str, Seconds] = field(default_factory=dict)


@dataclass(frozen=True)
class Progress(Event):
    """A step is done. This is reported a few times a second at most.

    Attributes:
        step: optimizer steps done.
        epoch: null if unknown.
        size: number of workers.
        values: what the script has reported.
    """

    step: Serial
    epoch: Serial | None
    size: Number
    values: Mapping[str, Value] = field(default_factory=dict)

    def number(self, name: str) -> float | None:
        """A value that the script has reported; None unless it is a number that every database can hold."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if abs(value) < 1e300 else None


@dataclass(frozen=True)
class Restored(Event):
    """Training goes on from a checkpoint.

    Attributes:
        step: optimizer steps done when it was taken.
    """

    path: str
    step: Serial


@dataclass(frozen=True)
class CheckpointSkipped(Event):
    """A damaged checkpoint was passed over for an older one."""

    path: str
    reason: str


@dataclass(frozen=True)
class Checkpointed(Event):
    """A checkpoint has been written.

    Attributes:
        step: optimizer steps done when it was taken.
        bytes: its size.
        seconds: that writing it took.
        last: whether it was taken after training had ended.
        again: whether the one before could not be written.
    """

    step: Serial
    path: str
    bytes: Serial
    seconds: Seconds
    last: bool = False
    again: bool = False


@dataclass(frozen=True)
class CheckpointFailed(Event):
    """A checkpoint could not be written; reported once for each reason until one could."""

    reason: str


Reported = Progress | Resumed | Restored | CheckpointSkipped | Checkpointed | CheckpointFailed | Standby
