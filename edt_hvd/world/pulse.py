"""The thread that tells the launcher, once a second, what this worker does, and at once its notices."""

import threading
import time

from edt_hvd.world import activity, notices, stages
from edt_hvd.world.control import Launcher

INTERVAL = 1.0
"""Seconds between two beats."""

USUAL = 10.0
"""Seconds that a stage may last before it is looked whether this process works."""


def start(launcher: Launcher) -> None:
    """Begin to send beats and notices; ends with the conversation."""
    threading.Thread(target=_run, args=(launcher,), name="edt-pulse", daemon=True).start()


def _run(launcher: Launcher) -> None:
    due = time.monotonic()
    seen: activity.Look | None = None
    while not launcher.is_lost:
        now = time.monotonic()
        stages.current().awake(now)
        if now >= due:
            seen = _note_work(now, stages.current(), seen)
            launcher.send("beat", **beat(now, stages.current()))
            due = now + INTERVAL
        notice = notices.take(timeout=due - now)
        if notice is not None:
            launcher.send("leaving", reason=notice)


def _note_work(now: float, found: stages.Stages, before: activity.Look | None) -> activity.Look | None:
    """Note whether this process has worked since it was looked at; what is to be seen of it now."""
    stage, seconds = found.lasting(now)
    after = activity.look(now) if seconds > USUAL and stage is not stages.Stage.REDUCING else None
    if activity.has_worked(before, after):
        found.worked(now)
    return after


def beat(now: float, found: stages.Stages) -> dict[str, object]:
    """The content of a `beat` message at `now`, seconds of the clock that the stages were entered by."""
    stage, seconds = found.lasting(now)
    return {
        "step": found.step,
        "stage": stage,
        "seconds": seconds,
        "idle": found.idle(now),
        "stages": {stage: times for stage, times in found.times.items() if times[0]},
    }
