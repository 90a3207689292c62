"""Stages of the training thread, by which a slow worker is distinguished from one that hangs.

================  ===================================================================================
stage             meaning
================  ===================================================================================
outside           outside any step of ours: before and after the elastic function, at the rendezvous,
                  in the function's first lines
forming           entering a world and bringing the state up to date
restoring         reading a checkpoint, to go on from it
starting to load  waiting for the first micro-batch from a loader whose processes may have to start first
loading           waiting for the loader's next micro-batch
computing         in the body of the loop over a step
reducing          in a collective of ours, waiting for the other workers
updating          from the end of a step's reduction to the next step: optimizer, commit, evaluation,
                  saving
================  ===================================================================================

Time outside that ends in forming was spent on the way to the rendezvous or waiting there. It is no work, so
it does not count.

Seconds in which this process was frozen (a signal, a container that is paused) count for no stage: `awake` is
called about once a second, and of the time between two calls no more than `LONGEST_NAP` counts.

A heartbeat is a sign of progress: the present stage counts from then on. The time that a stage has taken is
its longest interval without one.

The training thread writes the stages, any thread heartbeats, the one that calls `awake` and `worked` the
clock, all with plain assignments; any thread may read.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from enum import StrEnum

LONGEST_NAP = 2.0
"""Seconds between two calls of `awake` that are nothing unusual."""


class Stage(StrEnum):
    """What the training thread is doing; the table above says what each means."""

    OUTSIDE = "outside"
    FORMING = "forming"
    RESTORING = "restoring"
    STARTING_TO_LOAD = "starting to load"
    LOADING = "loading"
    COMPUTING = "computing"
    REDUCING = "reducing"
    UPDATING = "updating"


class Stages:
    """The present stage and the times of those before. Every `now` is seconds of one monotonic clock."""

    def __init__(self, now: float) -> None:
        self._awake = (now, 0.0)
        """When `awake` was called last, and the seconds that this process has been running by then."""
        self._heartbeat = (0.0, 0.0)
        """The seconds that this process had been running at the last heartbeat, and the longest time without
        one so far in the present stage."""
        self._worked_at = 0.0
        """The seconds that this process had been running when it was last seen to work."""
        self.present: tuple[Stage, float] = (Stage.OUTSIDE, 0.0)
        """The stage, and the seconds that this process had been running when it began."""
        self.call = ""
        """The small collective in which it waits for all others, by the script's name for it; else empty."""
        self.step: int | None = None
        """Optimizer steps done, as the last step has said."""
        self.times: dict[Stage, tuple[int, float]] = dict.fromkeys(Stage, (0, 0.0))
        """Of each stage: how often it has been completed, and the seconds it has taken at most."""

    def enter(self, stage: Stage, now: float) -> None:
        """The present stage is complete, another one begins."""
        running = self._running(now)
        last, _ = self.present
        if (last, stage) != (Stage.OUTSIDE, Stage.FORMING):
            count, longest = self.times[last]
            self.times[last] = (count + 1, max(longest, self._longest(running)))
        self.present = (stage, running)
        self._heartbeat = (running, 0.0)

    def heartbeat(self, now: float) -> None:
        """Note progress in the present stage; may be called in any thread."""
        running = self._running(now)
        self._heartbeat = (running, self._longest(running))

    def awake(self, now: float) -> None:
        """This process is running."""
        self._awake = (now, self._running(now))

    def worked(self, now: float) -> None:
        """This process has used a processor or a disk lately."""
        self._worked_at = self._running(now)

    def idle(self, now: float) -> float:
        """The seconds of the present stage since a heartbeat, or since this process was last seen to work."""
        _, since = self._counted()
        return self._running(now) - max(since, self._worked_at)

    def lasting(self, now: float) -> tuple[Stage, float]:
        """The present stage, and the seconds since its last heartbeat in which this process was running."""
        stage, since = self._counted()
        return stage, self._running(now) - since

    def _counted(self) -> tuple[Stage, float]:
        """The present stage, and the running seconds from which on it counts."""
        stage, since = self.present
        return stage, max(since, self._heartbeat[0])

    def _longest(self, running: float) -> float:
        """The longest time of the present stage without a heartbeat."""
        _, since = self._counted()
        return max(self._heartbeat[1], running - since)

    def _running(self, now: float) -> float:
        at, running = self._awake
        return running + min(now - at, LONGEST_NAP)


_stages = Stages(time.monotonic())


def current() -> Stages:
    """The stages of this process."""
    return _stages


def enter(stage: Stage) -> None:
    """The present stage is complete, another one begins."""
    _stages.enter(stage, time.monotonic())


def heartbeat() -> None:
    """Report progress while this worker is busy, or waits for long, outside of steps.

    `edt-launch` kills a worker that takes far too long while others wait for it. A heartbeat restarts that
    time. Do not call it from code that continues when training hangs, such as a separate thread. The call
    takes a microsecond, and has no effect without `edt-launch`.
    """
    _stages.heartbeat(time.monotonic())


@contextmanager
def during(stage: Stage) -> Iterator[None]:
    """Around what is another stage: the one before begins anew after it."""
    before, _ = _stages.present
    enter(stage)
    try:
        yield
    finally:
        enter(before)


def waiting_for_others() -> AbstractContextManager[None]:
    """Around a collective."""
    return during(Stage.REDUCING)


@contextmanager
def calling(call: str) -> Iterator[None]:
    """Around a small collective, by the name that the script knows it by."""
    _stages.call = call
    try:
        yield
    finally:
        _stages.call = ""
