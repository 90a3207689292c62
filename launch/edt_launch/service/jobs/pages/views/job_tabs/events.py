"""What has happened to a job, the latest first."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from edt_launch.core.history.event_wording import describe
from edt_launch.core.history.events import Event
from edt_launch.launcher.view.phases import PHASES
from edt_launch.service.jobs.pages.views.lives import Lives

Json = Mapping[str, Any]

MAX_RESIZES = 100
"""Pauses that are shown with their phases: the latest."""


@dataclass(frozen=True)
class Happened:
    """An event in words."""

    time: float
    text: str


@dataclass(frozen=True)
class ResizePhase:
    """A part of a resize; `left` and `width` are percents of the longest one."""

    name: str
    seconds: str
    number: int
    left: float
    width: float


@dataclass(frozen=True)
class Events:
    """What has happened, the latest first; resizes as REST shows them, with how their time was spent."""

    resizes: Sequence[tuple[Json, Sequence[ResizePhase]]]
    phases: Sequence[tuple[int, str]]
    lives: Lives
    events: Sequence[Happened]


def events(pauses: Sequence[Json], lives: Lives, happened: Sequence[Happened]) -> Events:
    """The tab."""
    shown = [one for one in pauses if one["from"] is not None][-MAX_RESIZES:]
    longest = max((sum(one["phases"].values()) for one in shown), default=0.0)
    return Events(
        resizes=[(one, _phases(one["phases"], longest)) for one in reversed(shown)],
        phases=[(number, name.replace("_", " ")) for number, name in enumerate(PHASES)],
        lives=lives,
        events=happened,
    )


def _phases(seconds: Mapping[str, float], longest: float) -> list[ResizePhase]:
    found, left = [], 0.0
    for number, name in enumerate(PHASES):
        width = 100 * seconds.get(name, 0.0) / longest if longest else 0.0
        if width:
            shown = name.replace("_", " ")
            found.append(
                ResizePhase(shown, f"{seconds[name]:.2f} s", number, round(left, 2), round(width, 2))
            )
        left += width
    return found


def happened(found: Iterable[Event], most: int) -> list[Happened]:
    """Events in words, the latest first, and so many at most."""
    described = [Happened(event.time, text) for event in found if (text := describe(event)) is not None]
    return described[::-1][:most]
