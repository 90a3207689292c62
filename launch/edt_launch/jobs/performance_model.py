"""What a job's past says of its future: what a resize costs it, how fast it is with how many workers."""

from dataclasses import replace

from edt_launch.allocator.model import Binding, Reason
from edt_launch.jobs.progress import JobProgress, LauncherRun

PRIOR_COST = 5.0
"""Seconds that a resize is taken to cost; counts like one resize that was seen."""

SETTLED_STEPS = 10
"""Optimizer steps at one size before its pace is believed."""


def resize_cost(progress: JobProgress) -> float:
    """Seconds of its time that a resize costs the job: the mean of its latest pauses and the prior."""
    return (PRIOR_COST + sum(progress.pauses)) / (1 + len(progress.pauses))


def speedup(progress: JobProgress) -> tuple[tuple[int, float], ...]:
    """Points (workers, speed), ascending, relative to one worker; empty while fewer than two sizes are known.

    Up to the smallest size that has been measured the speed is taken to be linear.
    """
    known = [pace for pace in progress.paces if pace.steps >= SETTLED_STEPS and pace.seconds > 0]
    if len(known) < 2:
        return ()
    first = known[0]
    unit = first.steps / first.seconds / first.size
    return tuple((pace.size, round(pace.steps / pace.seconds / unit, 3)) for pace in known)


def throughput(progress: JobProgress) -> float | None:
    """Optimizer steps a second at the present size; None while it is unknown."""
    size = progress.run.size if progress.run is not None else 0
    pace = next((pace for pace in progress.paces if pace.size == size), None)
    return pace.steps / pace.seconds if pace is not None and pace.seconds > 0 else None


def explained(run: LauncherRun | None, most: int, reason: Reason | None) -> Reason | None:
    """The allocator's reason for a job's size, where its program has asked for no more than that.

    Args:
        run: its launcher's.
        most: workers that it may have, as its owner says.
        reason: what the allocator says, which knows of the lower number alone.
    """
    if run is None or run.usable is None or reason is None:
        return reason
    if reason.binding is not Binding.MAX or run.usable >= min(most, run.max_np):
        return reason
    return replace(
        reason,
        text=f"has {reason.target}: its program has said that it can use {run.usable} at most",
        change="Its script decides: by its batch sizes, its number of engines, or its scale-up function.",
    )
