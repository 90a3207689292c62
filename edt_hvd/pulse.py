"""The thread that tells the launcher, once a second, what this worker does, and at once its notices."""

import threading
import time

from edt_hvd import notices, stages
from edt_hvd.control import Launcher

INTERVAL = 1.0
"""Seconds between two beats."""


def start(launcher: Launcher) -> None:
    """Begin to send beats and notices; ends with the conversation."""
    threading.Thread(target=_run, args=(launcher,), name="edt-pulse", daemon=True).start()


def _run(launcher: Launcher) -> None:
    due = time.monotonic()
    while not launcher.is_lost:
        now = time.monotonic()
        stages.current().awake(now)
        if now >= due:
            launcher.send("beat", **beat(now, stages.current()))
            due = now + INTERVAL
        notice = notices.take(timeout=due - now)
        if notice is not None:
            launcher.send("leaving", reason=notice)


def beat(now: float, found: stages.Stages) -> dict[str, object]:
    """The content of a `beat` message at `now`, seconds of the clock that the stages were entered by."""
    stage, seconds = found.lasting(now)
    return {
        "step": found.step,
        "stage": stage,
        "seconds": seconds,
        "stages": {stage: times for stage, times in found.times.items() if times[0]},
    }
