"""What the training thread is doing, for whoever has to tell a slow worker from one that hangs.

=========  ==========================================================================================
stage      meaning
=========  ==========================================================================================
outside    outside any step of ours: before and after the elastic function, at the door, in its first lines
forming    entering a world and bringing the state up to date
loading    waiting for the loader's next micro-batch
computing  in the body of the loop over a step
reducing   in a collective of ours, waiting for the other workers
updating   from the end of a step's reduction to the next step: optimizer, commit, evaluation, saving
=========  ==========================================================================================

Only the training thread writes, with plain assignments; any thread may read.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum


class Stage(StrEnum):
    """What the training thread is doing; the table above says what each means."""

    OUTSIDE = "outside"
    FORMING = "forming"
    LOADING = "loading"
    COMPUTING = "computing"
    REDUCING = "reducing"
    UPDATING = "updating"


class Stages:
    """The present stage and the times of those before."""

    def __init__(self, now: float) -> None:
        self.present: tuple[Stage, float] = (Stage.OUTSIDE, now)
        """The stage, and the seconds of the clock at which it began."""
        self.step: int | None = None
        """Optimizer steps done, as the last step has said."""
        self.times: dict[Stage, tuple[int, float]] = dict.fromkeys(Stage, (0, 0.0))
        """Of each stage: how often it has been completed, and the seconds it has taken at most."""

    def enter(self, stage: Stage, now: float) -> None:
        """The present stage is complete, another one begins."""
        last, since = self.present
        count, longest = self.times[last]
        self.times[last] = (count + 1, max(longest, now - since))
        self.present = (stage, now)


_stages = Stages(time.monotonic())


def current() -> Stages:
    """The stages of this process."""
    return _stages


def enter(stage: Stage) -> None:
    """The present stage is complete, another one begins."""
    _stages.enter(stage, time.monotonic())


@contextmanager
def waiting_for_others() -> Iterator[None]:
    """Around a collective: the stage before begins anew after it."""
    before, _ = _stages.present
    enter(Stage.REDUCING)
    try:
        yield
    finally:
        enter(before)
