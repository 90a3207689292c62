"""What the demo asks for and when: pure functions over the events of a job."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from edt_launch.core import events


@dataclass(frozen=True)
class Stage:
    """One part of the demo: from `at` (0 to 1, of all optimizer steps) on, `size` workers are asked for."""

    at: float
    size: int


DEMO = (Stage(0.0, 2), Stage(0.25, 4), Stage(0.5, 1), Stage(0.75, 3))


@dataclass(frozen=True)
class Progress:
    """How far the demo is.

    Attributes:
        stage: index of the stage whose size has been asked for.
        size: number of workers that the last step ran on; None before the first.
        done: part of all optimizer steps that is done, 0 to 1.
        accuracy: the last one the script has reported, or None.
    """

    stage: int = 0
    size: int | None = None
    done: float = 0.0
    accuracy: float | None = None


def observe(progress: Progress, event: events.Event) -> Progress:
    """The progress after one event of the job; events of no interest change nothing."""
    if not isinstance(event, events.Progress):
        return progress
    total, accuracy = event.number("total_steps"), event.number("accuracy")
    return dataclasses.replace(
        progress,
        size=event.size,
        done=event.step / total if total is not None and total > 0 else progress.done,
        accuracy=progress.accuracy if accuracy is None else accuracy,
    )


def advance(progress: Progress, plan: Sequence[Stage]) -> Progress:
    """The next stage if it is due, else `progress` itself.

    It is due when the training has come that far and was seen to run with the size of the stage before.
    """
    following = progress.stage + 1
    is_settled = progress.size == plan[progress.stage].size
    if following < len(plan) and is_settled and progress.done >= plan[following].at:
        return dataclasses.replace(progress, stage=following)
    return progress


def is_complete(progress: Progress, plan: Sequence[Stage]) -> bool:
    """Whether the last stage has been asked for and seen."""
    return progress.stage == len(plan) - 1 and progress.size == plan[-1].size
