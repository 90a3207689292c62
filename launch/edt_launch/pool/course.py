"""What a job's events say of it: a pure fold over them that can be written down and taken up again."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from edt_launch.hosts.allocation import DEVICE, HOST

PAUSES = 10
"""Pauses that count for the cost of a resize."""

MEMORY_STEPS = 1000
"""Steps at one size after which older ones count less and less for the pace there."""

BELOW: Mapping[str, float] = {
    **dict.fromkeys(("exit_code", "max_np", "max_workers", "min_np", "pid", "size"), 2**31),
    **dict.fromkeys(("generation", "pause", "started", "step", "time", "worker"), 2**53),
}
"""Numbers of an event are not negative, and less than this: what a job writes can be stored."""

Device = tuple[str, str]
"""A host and one of its devices."""


@dataclass(frozen=True)
class Pace:
    """Optimizer steps done at one number of workers, and the seconds they took."""

    size: int
    steps: float
    seconds: float


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

    pid: int = 0
    started: float = 0.0
    min_np: int = 1
    max_np: int = 1
    following: int = -1
    usable: int | None = None
    workers: tuple[tuple[int, str, str], ...] = ()
    lost: tuple[int, ...] = ()
    size: int = 0
    is_driven: bool = False
    exit_code: int | None = None
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
    step: int | None = None
    total_steps: int | None = None
    loss: float | None = None
    paces: tuple[Pace, ...] = ()
    pauses: tuple[float, ...] = ()
    resizes: int = 0
    restarts: int = 0
    reported: tuple[float, int, int] | None = None

    def observe(self, event: Mapping[str, Any]) -> "Course":
        """The course after one more event; one that is unknown, or not as expected, changes nothing."""
        if not all(_is_below(event.get(name, 0), most) for name, most in BELOW.items()):
            return self
        match event:
            case {
                "event": "begun",
                "pid": int(pid),
                "started": float(at),
                "min_np": int(low),
                "max_np": int(high),
            }:
                return replace(self, life=Life(pid, at, low, high), reported=None)
            case {"event": "restarting"}:
                return replace(self, restarts=self.restarts + 1, reported=None)
            case {"event": "progress", "step": int(step), "size": int(size), "time": float() | int() as time}:
                return self._progress(float(time), step, size, event.get("values"))
            case {"event": "resumed", "pause": float() | int() as pause}:
                return replace(self, pauses=(*self.pauses, float(pause))[-PAUSES:])
            case {"event": "world", "size": int(size)} if self.life is not None:
                is_resize = self.life.size not in (0, size)
                life = replace(self.life, size=size)
                return replace(self, life=life, resizes=self.resizes + is_resize, reported=None)
        if self.life is None:
            return self
        return replace(self, life=_live(self.life, event))

    def _progress(self, time: float, step: int, size: int, values: object) -> "Course":
        values = values if isinstance(values, Mapping) else {}
        after = replace(
            self,
            step=step,
            total_steps=_number(values.get("total_steps"), self.total_steps),
            loss=_real(values.get("loss"), self.loss),
            reported=(time, step, size),
        )
        if self.reported is None or self.reported[2] != size:
            return after
        steps, seconds = step - self.reported[1], time - self.reported[0]
        if steps <= 0 or seconds <= 0:
            return after
        known = next((pace for pace in self.paces if pace.size == size), Pace(size, 0.0, 0.0))
        kept = min(1.0, MEMORY_STEPS / (known.steps + steps))
        pace = Pace(size, known.steps * kept + steps, known.seconds * kept + seconds)
        others = [other for other in self.paces if other.size != size]
        return replace(after, paces=tuple(sorted([*others, pace], key=lambda pace: pace.size)))

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


def _live(life: Life, event: Mapping[str, Any]) -> Life:
    match event:
        case {"event": "launched"}:  # whatever ran before has been ended, as far as it could be reached
            return replace(life, workers=tuple(one for one in life.workers if one[0] in life.lost), size=0)
        case {"event": "started", "worker": int(worker), "host": str(host), "device": str(device)} if (
            re.fullmatch(HOST, host) and re.fullmatch(DEVICE, device)
        ):
            return replace(life, workers=(*life.workers, (worker, host, device)))
        case {"event": "released" | "lost", "worker": int(worker)}:
            return _without(life, worker, is_gone=event["event"] == "released")
        case {"event": "following", "generation": int(generation)}:
            return replace(life, following=max(life.following, generation))
        case {"event": "usable", "max_workers": int(most)} if most:
            return replace(life, usable=most)
        case {"event": "driver"}:
            return replace(life, is_driven=True)
        case {"event": "ended", "exit_code": int(exit_code)}:
            return replace(
                life, exit_code=exit_code, message=str(event.get("message", "")), workers=(), lost=()
            )
    return life


def _without(life: Life, worker: int, is_gone: bool) -> Life:
    """After the end of a worker, or of everything that is known of it."""
    if not is_gone:
        return replace(life, lost=(*life.lost, worker))
    workers = tuple(one for one in life.workers if one[0] != worker)
    return replace(life, workers=workers, lost=tuple(one for one in life.lost if one != worker))


def _is_below(value: object, most: float) -> bool:
    """Whether a value is no number, or one from 0 to `most`."""
    return not isinstance(value, int | float) or 0 <= value < most


def _number(value: object, before: int | None) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 < value < 2**62 else before


def _real(value: object, before: float | None) -> float | None:
    """A number that JSON and every database can hold."""
    return float(value) if isinstance(value, int | float) and abs(value) < 1e300 else before
