"""The thread that sends heartbeats to the launcher once a second, and preemption notices at once."""

import threading
import time

from edt_hvd.world import activity, preemption, stages
from edt_hvd.world.activity import ProcessSample
from edt_hvd.world.control import Launcher
from edt_messages.messages import Heartbeat, Leaving

INTERVAL = 1.0
"""Seconds between two heartbeats."""

USUAL = 10.0
"""Seconds after which a stage is checked for whether this process works."""


def start(launcher: Launcher) -> None:
    """Send heartbeats and notices until the connection ends."""
    threading.Thread(target=_run, args=(launcher,), name="edt-heartbeat", daemon=True).start()


def _run(launcher: Launcher) -> None:
    due = time.monotonic()
    seen: ProcessSample | None = None
    while not launcher.is_lost:
        now = time.monotonic()
        stages.current().awake(now)
        if now >= due:
            seen = _note_work(now, stages.current(), seen)
            launcher.send(heartbeat(now, stages.current()))
            due = now + INTERVAL
        notice = preemption.next_notice(timeout=due - now)
        if notice is not None:
            launcher.send(Leaving(notice))


def _note_work(now: float, found: stages.Stages, before: ProcessSample | None) -> ProcessSample | None:
    """Note whether this process has worked since the sample `before`; returns the next sample."""
    stage, seconds = found.lasting(now)
    after = activity.sample(now) if seconds > USUAL and stage is not stages.Stage.REDUCING else None
    if activity.has_worked(before, after):
        found.worked(now)
    return after


def heartbeat(now: float, found: stages.Stages) -> Heartbeat:
    """The heartbeat at `now`, by the clock of the stages."""
    stage, seconds = found.lasting(now)
    completed = {str(stage): times for stage, times in found.times.items() if times[0]}
    return Heartbeat(found.step, stage, seconds, found.idle(now), completed, found.call)
