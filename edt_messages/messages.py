"""The messages between the launcher and the workers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from edt_messages.codec import Codec
from edt_messages.records import Number, Seconds, Serial, Value

MAX_LINE = 2**20
"""Bytes of a line, with its newline."""

MAX_TEXT = 2**17
"""Characters of a `ProgramMessage`: it fits into a line, also where it is passed on, escaped once more."""

_Elapsed = Annotated[float, (-(2**53), 2**53)]
"""Seconds between readings of a clock in two threads, which may be less than 0 by a little."""


class Message:
    """Base of all messages."""


_codec = Codec[Message](MAX_LINE)
encode, decode, type_of = _codec.encode, _codec.decode, _codec.type_of


# From a worker to the launcher.


@_codec.message("hello")
@dataclass(frozen=True)
class Hello(Message):
    """The first message of a connection, with the job's secret."""

    token: str
    worker: Serial
    pid: Number


@_codec.message("at_rendezvous")
@dataclass(frozen=True)
class AtRendezvous(Message):
    """The worker is outside any world and waits for an assignment; `progress` is its state's, in commits."""

    progress: Serial


@_codec.message("standby")
@dataclass(frozen=True)
class Standby(Message):
    """What a newcomer cost until it got its slot: once, after the first wait at the rendezvous.

    Attributes:
        waited: seconds.
        processor: seconds of processor time.
        private: bytes of its own memory; None if unknown.
    """

    waited: Seconds
    processor: Seconds
    private: Serial | None = None


@_codec.message("synced")
@dataclass(frozen=True)
class Synced(Message):
    """The worker has the state of its world."""


@_codec.message("done")
@dataclass(frozen=True)
class Done(Message):
    """The worker's elastic function has returned."""


@_codec.message("leaving")
@dataclass(frozen=True)
class Leaving(Message):
    """The worker has a preemption notice."""

    reason: str


@_codec.message("heartbeat")
@dataclass(frozen=True)
class Heartbeat(Message):
    """What the training thread is doing; once a second.

    Attributes:
        step: optimizer steps done; None before the first.
        stage: the present one, see `edt_hvd.world.stages`.
        seconds: of the stage so far.
        idle: seconds of the stage since the worker last used a processor or a disk.
        stages: how often each stage has been completed, and the seconds that it has taken at most.
        call: the collective in which it waits for all others, as the script knows it; else empty.
    """

    step: Serial | None
    stage: str
    seconds: _Elapsed
    idle: _Elapsed
    stages: Mapping[str, tuple[Serial, _Elapsed]]
    call: str = ""


@_codec.message("progress")
@dataclass(frozen=True)
class Progress(Message):
    """A step is done; from the coordinator, a few times a second at most.

    Attributes:
        step: optimizer steps done.
        epoch: None if unknown.
        size: number of workers.
        values: what the script has reported.
    """

    step: Serial
    epoch: Serial | None
    size: Number
    values: Mapping[str, Value] = field(default_factory=dict)


@_codec.message("resumed")
@dataclass(frozen=True)
class Resumed(Message):
    """The first step after a change of the world is done; from the coordinator.

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


@_codec.message("restored")
@dataclass(frozen=True)
class Restored(Message):
    """Training goes on from a checkpoint, taken after so many optimizer steps."""

    path: str
    step: Serial


@_codec.message("checkpoint_skipped")
@dataclass(frozen=True)
class CheckpointSkipped(Message):
    """A damaged checkpoint was passed over for an older one."""

    path: str
    reason: str


@_codec.message("checkpointed")
@dataclass(frozen=True)
class Checkpointed(Message):
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


@_codec.message("checkpoint_failed")
@dataclass(frozen=True)
class CheckpointFailed(Message):
    """A checkpoint could not be written; sent once for each reason until one could."""

    reason: str


@_codec.message("checkpoint_wanted")
@dataclass(frozen=True)
class CheckpointWanted(Message):
    """The worker waits for the newest checkpoint to be brought to its host, into `folder`."""

    folder: str


@_codec.message("saving")
@dataclass(frozen=True)
class Saving(Message):
    """The program writes a checkpoint of its own; or, unless `active`, has written it."""

    active: bool


@_codec.message("held")
@dataclass(frozen=True)
class Held(Message):
    """The worker, which was told to stop, waits after a checkpoint of its program until it is ended."""


@_codec.message("world")
@dataclass(frozen=True)
class WorldFormed(Message):
    """Horovod's own driver has formed a world; only in the file that workers append to under horovodrun."""

    generation: Serial
    size: Number


@_codec.message("program_message")
@dataclass(frozen=True)
class ProgramMessage(Message):
    """Text for the process that had the workers started; the launcher passes it on unread."""

    text: Annotated[str, (0, MAX_TEXT + 1)]


# From the launcher to a worker.


@_codec.message("stop")
@dataclass(frozen=True)
class Stop(Message):
    """The world of `generation` is ready: stop after the step that all workers agree on.

    It only ever raises the wanted generation, so one that comes late or twice changes nothing.
    """

    generation: Serial


@_codec.message("assign")
@dataclass(frozen=True)
class Assign(Message):
    """The worker's place in the world of `generation`, in Horovod's terms.

    The members meet at `port` of `address`, an IPv4 address; if that is empty, of the one that they know.
    """

    rank: Number
    size: Number
    local_rank: Number
    local_size: Number
    cross_rank: Number
    cross_size: Number
    host: str
    generation: Serial
    port: Number
    address: str = ""


@_codec.message("admit")
@dataclass(frozen=True)
class Admit(Message):
    """The worker is let into the world of `generation`, which it was started for; or goes on in it.

    The job has done so many optimizer steps until then.
    """

    generation: Serial
    step: Serial = 0


@_codec.message("checkpoint_brought")
@dataclass(frozen=True)
class CheckpointBrought(Message):
    """The newest checkpoint, if there is one, is where the worker looks for it."""


@_codec.message("leave")
@dataclass(frozen=True)
class Leave(Message):
    """The worker is not needed any more: it saves its state if `saves`, and exits with code 0."""

    saves: bool = False


@_codec.message("cut")
@dataclass(frozen=True)
class Cut(Message):
    """The world of `generation` has lost a member."""

    generation: Serial


@_codec.message("end")
@dataclass(frozen=True)
class End(Message):
    """The job is being ended: exit now, or with `has_grace` as after SIGTERM."""

    has_grace: bool = False
