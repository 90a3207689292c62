"""What a fault script says: one fault a line, when it happens, to whom, and where in the step or the resize.

::

    # comments and empty lines are allowed
    at step 12, kill rank 1
    at step 12, kill rank 0 after the commit
    at step 20, stop rank 0
    at step 50, terminate rank 1
    at step 60, hang rank 2 in the data loader
    at step 9, drop rank 1
    at step 5, slow rank 2 by 0.5 s for 10 steps
    at step 30, corrupt the newest checkpoint
    at step 31, fill the disk
    at step 40, free the disk
    at step 40, allocate 1 4 2 slots
    at resize 2, kill rank 1 in rendezvous
    at resize 3, kill a newcomer at the door
    at checkpoint 2, kill rank 0

Step s is the one that leads to commit s, so it does not depend on the number of workers. Resize k is the k-th
time that the world is formed after the first one, whatever the reason. Checkpoint n means the first commit
after the n-th checkpoint has been written, whenever that was.
"""

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass

from edt_hvd.errors import FaultError


class Unit(enum.Enum):
    """What is counted."""

    STEP = "step"
    RESIZE = "resize"
    CHECKPOINT = "checkpoint"


class Place(enum.Enum):
    """Where in a step or a resize a fault happens."""

    IN_LOADER = "in the data loader"
    IN_MICRO_BATCH = "in a micro-batch"
    BEFORE_REDUCTION = "before the reduction"
    AFTER_REDUCTION = "after the reduction"
    AFTER_COMMIT = "after the commit"
    AT_DOOR = "at the door"
    IN_RENDEZVOUS = "in rendezvous"
    IN_TRANSFER = "in transfer"


PLACES = {
    Unit.STEP: (
        Place.BEFORE_REDUCTION,
        Place.IN_LOADER,
        Place.IN_MICRO_BATCH,
        Place.AFTER_REDUCTION,
        Place.AFTER_COMMIT,
    ),
    Unit.RESIZE: (Place.IN_RENDEZVOUS, Place.AT_DOOR, Place.IN_TRANSFER),
    Unit.CHECKPOINT: (Place.AFTER_COMMIT,),
}
"""The places that there are; the first is meant where none is named."""


@dataclass(frozen=True)
class Kill:
    """The process gets SIGKILL."""


@dataclass(frozen=True)
class Stop:
    """The process gets SIGSTOP."""


@dataclass(frozen=True)
class Terminate:
    """The process gets SIGTERM."""


@dataclass(frozen=True)
class Hang:
    """The training thread goes no further."""


@dataclass(frozen=True)
class Drop:
    """The connections to the other workers are cut."""


@dataclass(frozen=True)
class Slow:
    """The training thread loses so many seconds in each of so many steps."""

    seconds: float
    steps: int = 1


@dataclass(frozen=True)
class Corrupt:
    """A bit of the newest checkpoint is flipped, or its end is cut off."""

    truncate: bool = False


@dataclass(frozen=True)
class FillDisk:
    """The file system of the checkpoints gets full."""


@dataclass(frozen=True)
class FreeDisk:
    """The file system of the checkpoints has room again."""


@dataclass(frozen=True)
class Allocate:
    """The allocation changes to each of these numbers of slots, one right after the other."""

    slots: tuple[int, ...]


Deed = Kill | Stop | Terminate | Hang | Drop | Slow | Corrupt | FillDisk | FreeDisk | Allocate


@dataclass(frozen=True)
class Fault:
    """One line of the script.

    Attributes:
        line: its number, from 1.
        unit, number, place: when it happens.
        rank: of the worker that it happens to, or that does it; None: a worker that has been in no world yet.
        deed: what happens.
    """

    line: int
    unit: Unit
    number: int
    place: Place
    rank: int | None
    deed: Deed


def parse(text: str) -> tuple[Fault, ...]:
    """Read a script.

    Raises:
        FaultError: a line makes no sense; the message names its number and what was expected.
    """
    lines = ((number, line.partition("#")[0].strip()) for number, line in enumerate(text.splitlines(), 1))
    return tuple(_fault(number, line) for number, line in lines if line)


_MOMENT = re.compile(r"at (?P<unit>step|resize|checkpoint) (?P<number>[1-9]\d*), (?P<rest>.*)")
_PLACE = re.compile(r"(?P<deed>.*?)(?: (?P<place>" + "|".join(place.value for place in Place) + "))?")

_VICTIM = r" (?:rank (?P<rank>\d+)|a newcomer)"
_SIMPLE: dict[str, Callable[[], Deed]] = {
    "kill": Kill,
    "stop": Stop,
    "terminate": Terminate,
    "hang": Hang,
    "drop": Drop,
}
_TO_WORKER = re.compile(rf"(?P<verb>{'|'.join(_SIMPLE)}){_VICTIM}")
_SLOW = re.compile(rf"slow{_VICTIM} by (?P<seconds>\d+(\.\d+)?|\.\d+) s(?: for (?P<steps>[1-9]\d*) steps?)?")
_ALLOCATE = re.compile(r"allocate (?P<slots>[1-9]\d*( [1-9]\d*)*) slots?")
_TO_JOB: dict[str, Deed] = {
    "corrupt the newest checkpoint": Corrupt(),
    "truncate the newest checkpoint": Corrupt(truncate=True),
    "fill the disk": FillDisk(),
    "free the disk": FreeDisk(),
}
DEEDS = (
    *(f"{verb} rank R" for verb in _SIMPLE),
    "slow rank R by X s [for N steps]",
    *_TO_JOB,
    "allocate N [N ...] slots",
)
"""The forms of what can happen, for error messages; instead of "rank R" also "a newcomer"."""


def _fault(line: int, text: str) -> Fault:
    moment = _MOMENT.fullmatch(text)
    if moment is None:
        raise FaultError(line, text, "'at UNIT N, ...' with N from 1; UNIT is step, resize or checkpoint")
    unit = Unit(moment["unit"])
    rest = _PLACE.fullmatch(moment["rest"])
    assert rest is not None
    place = Place(rest["place"]) if rest["place"] else PLACES[unit][0]
    if place not in PLACES[unit]:
        known = ", ".join(repr(place.value) for place in PLACES[unit])
        raise FaultError(line, place.value, f"a place at a {unit.value}: {known}")
    rank, deed = _deed(line, rest["deed"])
    if isinstance(deed, Slow) and deed.steps > 1 and unit is not Unit.STEP:
        raise FaultError(line, f"{deed.steps} steps", f"no number of steps at a {unit.value}")
    if rank is None and unit is not Unit.RESIZE:
        raise FaultError(line, "a newcomer", "'rank R': whoever takes a step is no newcomer")
    return Fault(line, unit, int(moment["number"]), place, rank, deed)


def _deed(line: int, text: str) -> tuple[int | None, Deed]:
    """To whom it happens, and what; the coordinator sees to what happens to the whole job."""
    if text in _TO_JOB:
        return 0, _TO_JOB[text]
    if match := _ALLOCATE.fullmatch(text):
        return 0, Allocate(tuple(map(int, match["slots"].split())))
    if match := _TO_WORKER.fullmatch(text):
        return _rank(match), _SIMPLE[match["verb"]]()
    if match := _SLOW.fullmatch(text):
        return _rank(match), Slow(float(match["seconds"]), int(match["steps"] or 1))
    raise FaultError(line, text, "one of " + "; ".join(DEEDS) + "; and then the place, if any")


def _rank(match: re.Match[str]) -> int | None:
    return None if match["rank"] is None else int(match["rank"])
