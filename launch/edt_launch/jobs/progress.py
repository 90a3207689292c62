"""What a job's events say of it: a pure fold over them that can be written down and taken up again."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from edt_launch.cluster.allocation import DEVICE, HOST

PAUSES = 10
"""Pauses that count for the cost of a resize."""

MEMORY_STEPS = 1000
"""Steps at one size after which older ones count less and less for the pace there."""

MOST = 2**20
"""Workers of a job of which nothing is known."""

BELOW: Mapping[str, float] = {
    **dict.fromkeys(("exit_code", "max_np", "max_workers", "min_np", "pid", "size"), 2**31),
    **dict.fromkeys(("generation", "pause", "started", "step", "time", "worker"), 2**53),
}
"""Numbers of an event are not negative, and less than this: what a job writes can be stored."""

# The same for a course that was written down, where the job can change it.
Number = Annotated[int, Field(ge=0, lt=2**31)]
Serial = Annotated[int, Field(ge=0, lt=2**53)]
Seconds = Annotated[float, Field(ge=0, lt=2**53)]
HostName = Annotated[str, Field(pattern=f"^(?:{HOST})$")]
DeviceName = Annotated[str, Field(pattern=f"^(?:{DEVICE})$")]

Device = tuple[str, str]
"""A host and one of its devices."""


@dataclass(frozen=True)
class Pace:
    """Optimizer steps done at one number of workers, and the seconds they took."""

    size: Number
    steps: Seconds
    seconds: Seconds


@dataclass(frozen=True)
class Life:
    """One `edt-launch` of the job.

    Attributes:
        pid, started: of its process, the latter in unix seconds.
        min_np, max_np: bounds that it keeps to.
        following: generation of the newest allocation that it starts workers by; -1 before the first.
        usable: workers that the program can use at most, as it has said; None while it has not.
        workers: those whose processes may be there: serial number, host, device.
        lost: those of them that nobody can say anything about, by their serial numbers.
        size: workers in the present world; 0 before the first.
        is_driven: whether the script has begun in a driver, which has workers started when it wants them.
        exit_code, message: how it ended; None and empty while it has not said so.
    """

    pid: Number = 0
    started: Seconds = 0.0
    min_np: Number = 1
    max_np: Number = 1
    following: Annotated[int, Field(ge=-1, lt=2**53)] = -1
    usable: Number | None = None
    workers: tuple[tuple[Serial, HostName, DeviceName], ...] = ()
    lost: tuple[Serial, ...] = ()
    size: Number = 0
    is_driven: bool = False
    exit_code: Number | None = None
    message: str = ""

    @property
    def devices(self) -> frozenset[Device]:
        """Devices that its workers may be using."""
        return frozenset((host, device) for _, host, device in self.workers)


@dataclass(frozen=True)
class Course:
    """The whole job so far.

    Attributes:
        life: the latest `edt-launch`; None before the first.
        step, total_steps, loss: as reported last.
        paces: of each size, ascending.
        pauses: the latest ones, seconds.
        resizes: worlds that were formed of another number of workers than the one before.
        restarts: how often a launcher has started its workers again.
        reported: time, step and size of the last report; None where nothing connects to it.
    """

    life: Life | None = None
    step: Serial | None = None
    total_steps: Annotated[int, Field(ge=0, lt=2**62)] | None = None
    loss: Annotated[float, Field(gt=-1e300, lt=1e300)] | None = None
    paces: tuple[Pace, ...] = ()
    pauses: Annotated[tuple[Seconds, ...], Field(max_length=PAUSES)] = ()
    resizes: Number = 0
    restarts: Number = 0
    reported: tuple[Seconds, Serial, Number] | None = None

    def after(self, events: Iterable[Mapping[str, Any]], most: int = MOST) -> "tuple[Course, int]":
        """The course after more events, each of which takes constant time.

        Events that are unknown, or not as expected, change nothing.

        Args:
            events: in the order in which they happened.
            most: workers that the job can have at most. No world has more, and no more than twice as many
                processes are there at a time, which is when all are being replaced.

        Returns:
            The course, and how many events were refused because of `most`.
        """
        fold = _Fold(self, most)
        for event in events:
            fold.observe(event)
        return fold.course(), fold.refused

    def observe(self, event: Mapping[str, Any]) -> "Course":
        """The course after one more event."""
        return self.after([event])[0]

    def as_json(self) -> dict[str, Any]:
        """What `from_json` makes the same course of."""
        return asdict(self)

    @classmethod
    def from_json(cls, written: Mapping[str, Any]) -> "Course":
        """A course that was written down.

        Raises:
            ValueError: it was written by another version, or by somebody else.
        """
        return TypeAdapter(cls).validate_python(written)


class _Fold:
    """A course while events are added to it: what there may be many of can be changed in place."""

    def __init__(self, course: Course, most: int) -> None:
        self.refused = 0
        self._most = most
        self._course = course
        self._life = course.life
        self._paces = {pace.size: pace for pace in course.paces[:most]}
        self._workers = _by_number(course.life)

    def course(self) -> Course:
        paces = tuple(sorted(self._paces.values(), key=lambda pace: pace.size))
        life = self._life
        if life is not None:
            life = replace(life, workers=tuple((number, *at) for number, at in self._workers.items()))
        return replace(self._course, life=life, paces=paces)

    def observe(self, event: Mapping[str, Any]) -> None:
        if not all(_is_below(event.get(name, 0), most) for name, most in BELOW.items()):
            return
        match event:
            case {
                "event": "begun",
                "pid": int(pid),
                "started": float(at),
                "min_np": int(low),
                "max_np": int(high),
            }:
                self._life = Life(pid, at, low, high)
                self._workers.clear()
                self._change(reported=None)
            case {"event": "restarting"}:
                self._change(restarts=self._course.restarts + 1, reported=None)
            case {"event": "progress" | "world", "size": int(size)} if size > self._most:
                self.refused += 1
            case {"event": "progress", "step": int(step), "size": int(size), "time": float() | int() as time}:
                self._progress(float(time), step, size, event.get("values"))
            case {"event": "resumed", "pause": float() | int() as pause}:
                self._change(pauses=(*self._course.pauses, float(pause))[-PAUSES:])
            case {"event": "world", "size": int(size)} if self._life is not None:
                is_resize = self._life.size not in (0, size)
                self._life = replace(self._life, size=size)
                self._change(resizes=self._course.resizes + is_resize, reported=None)
            case _ if self._life is not None:
                self._life = self._live(self._life, event)

    def _change(self, **fields: Any) -> None:
        self._course = replace(self._course, **fields)

    def _progress(self, time: float, step: int, size: int, values: object) -> None:
        values = values if isinstance(values, Mapping) else {}
        before = self._course.reported
        self._change(
            step=step,
            total_steps=_number(values.get("total_steps"), self._course.total_steps),
            loss=_real(values.get("loss"), self._course.loss),
            reported=(time, step, size),
        )
        if before is None or before[2] != size:
            return
        steps, seconds = step - before[1], time - before[0]
        if steps <= 0 or seconds <= 0:
            return
        known = self._paces.get(size, Pace(size, 0.0, 0.0))
        kept = min(1.0, MEMORY_STEPS / (known.steps + steps))
        self._paces[size] = Pace(size, known.steps * kept + steps, known.seconds * kept + seconds)

    def _live(self, life: Life, event: Mapping[str, Any]) -> Life:
        match event:
            case {"event": "launched"}:  # whatever ran before has been ended, as far as it could be reached
                self._workers = {number: at for number, at in self._workers.items() if number in life.lost}
                return replace(life, size=0)
            case {"event": "started", "worker": int(worker), "host": str(host), "device": str(device)} if (
                re.fullmatch(HOST, host) and re.fullmatch(DEVICE, device)
            ):
                if worker in self._workers or len(self._workers) < 2 * self._most:
                    self._workers[worker] = (host, device)
                else:
                    self.refused += 1
            case {"event": "lost", "worker": int(worker)} if worker in self._workers:
                return replace(life, lost=(*(one for one in life.lost if one != worker), worker))
            case {"event": "released", "worker": int(worker)}:
                self._workers.pop(worker, None)
                return replace(life, lost=tuple(one for one in life.lost if one != worker))
            case {"event": "following", "generation": int(generation)}:
                return replace(life, following=max(life.following, generation))
            case {"event": "usable", "max_workers": int(most)} if most:
                return replace(life, usable=most)
            case {"event": "driver"}:
                return replace(life, is_driven=True)
            case {"event": "ended", "exit_code": int(exit_code)}:
                self._workers.clear()
                return replace(life, exit_code=exit_code, message=str(event.get("message", "")), lost=())
        return life


def _by_number(life: Life | None) -> dict[int, Device]:
    return {number: (host, device) for number, host, device in life.workers} if life is not None else {}


def _is_below(value: object, most: float) -> bool:
    """Whether a value is no number, or one from 0 to `most`."""
    return not isinstance(value, int | float) or 0 <= value < most


def _number(value: object, before: int | None) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 < value < 2**62 else before


def _real(value: object, before: float | None) -> float | None:
    """A number that JSON and every database can hold."""
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else before
