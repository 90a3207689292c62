"""The events that are messages of workers."""

from dataclasses import dataclass, field

from edt_launch.core.history.event import Event
from edt_messages import messages
from edt_messages.records import Serial


@dataclass(frozen=True)
class Standby(messages.Standby, Event):
    """What a newcomer cost until it got its slot.

    Attributes:
        waited: seconds.
        processor: seconds of processor time.
        private: bytes of its own memory; null if unknown.
    """

    worker: Serial = field(kw_only=True)


@dataclass(frozen=True)
class Resumed(messages.Resumed, Event):
    """The first step after a change of the world is done.

    Attributes:
        from_: number of workers before.
        to: number of workers after.
        pause: seconds in which nothing was trained.
        phases: seconds of each phase of the resize.
    """


@dataclass(frozen=True)
class Progress(messages.Progress, Event):
    """A step is done. This is reported a few times a second at most.

    Attributes:
        step: optimizer steps done.
        epoch: null if unknown.
        size: number of workers.
        values: what the script has reported.
    """

    def number(self, name: str) -> float | None:
        """A value that the script has reported; None unless it is a number that every database can hold."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if abs(value) < 1e300 else None


@dataclass(frozen=True)
class Restored(messages.Restored, Event):
    """Training goes on from a checkpoint.

    Attributes:
        step: optimizer steps done when it was taken.
    """


@dataclass(frozen=True)
class CheckpointSkipped(messages.CheckpointSkipped, Event):
    """A damaged checkpoint was passed over for an older one."""


@dataclass(frozen=True)
class Checkpointed(messages.Checkpointed, Event):
    """A checkpoint has been written.

    Attributes:
        step: optimizer steps done when it was taken.
        bytes: its size.
        seconds: that writing it took.
        last: whether it was taken after training had ended.
        again: whether the one before could not be written.
    """


@dataclass(frozen=True)
class CheckpointFailed(messages.CheckpointFailed, Event):
    """A checkpoint could not be written; reported once for each reason until one could."""


Reported = Progress | Resumed | Restored | CheckpointSkipped | Checkpointed | CheckpointFailed | Standby

_EVENTS: dict[type[messages.Message], type[Reported]] = {
    messages.Progress: Progress,
    messages.Resumed: Resumed,
    messages.Restored: Restored,
    messages.CheckpointSkipped: CheckpointSkipped,
    messages.Checkpointed: Checkpointed,
    messages.CheckpointFailed: CheckpointFailed,
}


def event_of(worker: int, message: messages.Message) -> Reported | None:
    """The event that a worker's message is; None for messages that are none."""
    if isinstance(message, messages.Standby):
        return Standby(**vars(message), worker=worker)
    kind = _EVENTS.get(type(message))
    return None if kind is None else kind(**vars(message))
