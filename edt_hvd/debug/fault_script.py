"""Fault scripts: TOML files with one row for each fault: when it happens, to which worker, and what it is.

::

    faults = [
        { step = 12, action = "kill", rank = 1 },
        { step = 12, action = "kill", rank = 0, point = "after-commit" },
        { step = 5, action = "slow", rank = 2, seconds = 0.5, steps = 10 },
        { step = 30, action = "corrupt-checkpoint" },
        { step = 40, action = "allocate", slots = [1, 4, 2] },
        { resize = 3, action = "kill", rank = "newcomer", point = "waiting" },
        { checkpoint = 2, action = "kill", rank = 0 },
    ]

Step s is the one that leads to commit s, so it does not depend on the number of workers. Resize k is the k-th
time that the world is formed after the first one, whatever the reason. Checkpoint n means the first commit
after the n-th checkpoint has been written, whenever that was.
"""

import enum
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from edt_hvd.errors import FaultError

Name = TypeVar("Name", bound=enum.StrEnum)


class Unit(enum.StrEnum):
    """The unit in which a fault's time is counted."""

    STEP = "step"
    RESIZE = "resize"
    CHECKPOINT = "checkpoint"


class Point(enum.StrEnum):
    """Where in a step or a resize a fault happens."""

    LOADER = "loader"
    MICRO_BATCH = "micro-batch"
    BEFORE_REDUCTION = "before-reduction"
    AFTER_REDUCTION = "after-reduction"
    AFTER_COMMIT = "after-commit"
    WAITING = "waiting"
    RENDEZVOUS = "rendezvous"
    TRANSFER = "transfer"


POINTS = {
    Unit.STEP: (
        Point.BEFORE_REDUCTION,
        Point.LOADER,
        Point.MICRO_BATCH,
        Point.AFTER_REDUCTION,
        Point.AFTER_COMMIT,
    ),
    Unit.RESIZE: (Point.RENDEZVOUS, Point.WAITING, Point.TRANSFER),
    Unit.CHECKPOINT: (Point.AFTER_COMMIT,),
}
"""The points that there are; the first is meant where none is named."""


class Action(enum.StrEnum):
    """What happens."""

    KILL = "kill"
    STOP = "stop"
    TERMINATE = "terminate"
    HANG = "hang"
    DROP = "drop"
    SLOW = "slow"
    CORRUPT_CHECKPOINT = "corrupt-checkpoint"
    TRUNCATE_CHECKPOINT = "truncate-checkpoint"
    FILL_DISK = "fill-disk"
    FREE_DISK = "free-disk"
    ALLOCATE = "allocate"


OF_JOB = (
    Action.CORRUPT_CHECKPOINT,
    Action.TRUNCATE_CHECKPOINT,
    Action.FILL_DISK,
    Action.FREE_DISK,
    Action.ALLOCATE,
)
"""What happens to the whole job, and is done by rank 0; the rest happens to one worker."""

NEWCOMER = "newcomer"
"""In place of a rank: a worker that has been in no world yet."""

MAX_BYTES = 2**20
"""Size of a script, at most."""

MAX_SECONDS = 86400.0
"""Seconds that a slow worker loses in a step, at most: a day."""

MAX_WORKERS = 65536
"""Slots of an allocation, at most; ranks are below it."""


@dataclass(frozen=True)
class Fault:
    """One row of the script.

    Attributes:
        row: its number, from 1.
        unit, number, point: when it happens.
        action: what happens.
        rank: of the worker that it happens to, or that does it; None: a worker that has been in no world yet.
        seconds, steps: that the training thread of a slow worker loses, in each of so many steps.
        slots: numbers of slots that the allocation changes to, one right after the other.
    """

    row: int
    unit: Unit
    number: int
    point: Point
    action: Action
    rank: int | None = 0
    seconds: float = 0.0
    steps: int = 1
    slots: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"fault {self.row}"


def parse(text: str) -> tuple[Fault, ...]:
    """Read a script.

    Raises:
        FaultError: it is not TOML, longer than 1 MiB, or a row is invalid; the message names it and what was
            expected.
    """
    if len(text) > MAX_BYTES:
        raise FaultError("the fault script", f"{len(text)} characters", f"at most {MAX_BYTES}")
    try:
        script = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # numbers and brackets without end, too
        raise FaultError("the fault script", str(error), "TOML") from error
    rows = script.pop("faults", "no faults")
    if script or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise FaultError("the fault script", ", ".join(script) or rows, "faults = [{ ... }, ...] and no more")
    return tuple(_fault(number, row) for number, row in enumerate(rows, 1))


def _fault(number: int, row: Mapping[str, Any]) -> Fault:
    where = f"fault {number}"
    units = [unit for unit in Unit if unit in row]
    if len(units) != 1 or not _is_count(row[units[0]]):
        raise FaultError(where, dict(row), "one of step, resize and checkpoint, with a number from 1")
    (unit,) = units
    point = _one_of(where, "point", row.get("point", POINTS[unit][0]), POINTS[unit], f" at a {unit}")
    action = _one_of(where, "action", row.get("action"), tuple(Action))
    options = _OPTIONS.get(action, {})
    known = {unit, "point", "action", *options, *(() if action in OF_JOB else ("rank",))}
    if unknown := sorted(row.keys() - known):
        raise FaultError(
            where, ", ".join(unknown), f"of {action} at a {unit} only {', '.join(sorted(known))}"
        )
    rank = 0 if action in OF_JOB else _rank(where, row.get("rank"), unit)
    given: dict[str, Any] = {name: read(where, row[name]) for name, read in options.items() if name in row}
    if missing := {"seconds", "slots"} & options.keys() - given.keys():
        raise FaultError(where, dict(row), f"{' and '.join(missing)} of {action}")
    if given.get("steps", 1) > 1 and unit is not Unit.STEP:
        raise FaultError(where, f"steps = {given['steps']}", f"no number of steps at a {unit}")
    return Fault(number, unit, row[unit], point, action, rank, **given)


def _one_of(where: str, name: str, value: Any, known: Sequence[Name], context: str = "") -> Name:
    if value not in known:
        found = f"{name} = {value!r}" if value is not None else f"no {name}"
        raise FaultError(where, found, f"one of {', '.join(known)}{context}")
    return known[known.index(value)]


def _rank(where: str, value: Any, unit: Unit) -> int | None:
    if value == NEWCOMER and unit is Unit.RESIZE:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MAX_WORKERS:
        newcomer = f', or "{NEWCOMER}"' if unit is Unit.RESIZE else ""
        found = "no rank" if value is None else f"rank = {value!r}"
        raise FaultError(where, found, f"the number of a worker, from 0 to {MAX_WORKERS - 1}{newcomer}")
    return value


def _seconds(where: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_SECONDS:
        raise FaultError(where, f"seconds = {value!r}", f"a number from 0 to {MAX_SECONDS:g}")
    return float(value)


def _steps(where: str, value: Any) -> int:
    if not _is_count(value):
        raise FaultError(where, f"steps = {value!r}", "a number from 1")
    return int(value)


def _slots(where: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not value or not all(_is_count(s) and s <= MAX_WORKERS for s in value):
        raise FaultError(where, f"slots = {value!r}", f"a list of numbers from 1 to {MAX_WORKERS}")
    return tuple(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


_OPTIONS: dict[Action, dict[str, Callable[[str, Any], Any]]] = {
    Action.SLOW: {"seconds": _seconds, "steps": _steps},
    Action.ALLOCATE: {"slots": _slots},
}
"""What rows of an action have besides, and how it is read."""
