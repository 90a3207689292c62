"""A picture of a replay: who had how many GPUs over time, and how many jobs waited."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from edt_launch.tools.simulate.replay import SimulatedJob, SimulatedRun

POINTS = 1500
"""Points in time that are drawn."""
NAMED = 9
"""Users that have a colour of their own: those with most GPU time."""
OTHERS_COLOUR = "#bbbbbb"
HOUR = 3600.0


def draw(outcome: SimulatedJob, path: Path, title: str) -> None:
    """Write the picture as a PNG to `path`, replacing it in one go.

    Raises:
        ImportError: matplotlib is not installed.
        OSError: the file cannot be written.
    """
    import matplotlib as mpl  # here: half a second that other commands need not pay

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    end = max(run.ended for run in outcome.runs)
    times = [end * i / (POINTS - 1) for i in range(POINTS)]
    held = by_user(outcome.runs, times)
    figure, (upper, lower) = plt.subplots(
        2, 1, sharex=True, figsize=(11, 6), height_ratios=(3, 1), layout="constrained"
    )
    figure.suptitle(title)
    hours = [time / HOUR for time in times]
    colours = [*plt.get_cmap("tab10").colors[:NAMED], OTHERS_COLOUR]
    upper.stackplot(
        hours, *held.values(), labels=list(held), colors=colours[: len(held)], step="post", linewidth=0
    )
    upper.axhline(outcome.gpus, color="black", linewidth=0.8, linestyle=":")
    upper.set(ylabel=f"GPUs, of {outcome.gpus}", ylim=(0, outcome.gpus * 1.05))
    upper.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), title="user", reverse=True, frameon=False)
    running, waiting = jobs_at(outcome.runs, times)
    lower.step(hours, running, where="post", color="#0072b2", label="running")
    lower.step(hours, waiting, where="post", color="#d55e00", label="waiting")
    lower.set(ylabel="jobs", xlabel="hours", xlim=(0, end / HOUR), ylim=(0, None))
    lower.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    unfinished = path.with_name(path.name + ".part")
    figure.savefig(unfinished, dpi=120, format="png")
    plt.close(figure)
    unfinished.replace(path)


def by_user(runs: Sequence[SimulatedRun], times: Sequence[float]) -> dict[str, list[int]]:
    """GPUs of each user at each of the times; all but the `NAMED` largest users are `others`."""
    total: Counter[str] = Counter()
    for run in runs:
        for (start, size), (end, _) in pairwise(run.sizes):
            total[run.job.user] += int(size * (end - start))
    named = [user for user, _ in total.most_common(NAMED)]
    held = {user: [0] * len(times) for user in sorted(named)}
    if len(total) > len(named):
        held["others"] = [0] * len(times)
    for run in runs:
        row = held[run.job.user if run.job.user in held else "others"]
        for (start, size), (end, _) in pairwise(run.sizes):
            for i in _between(times, start, end):
                row[i] += size
    return held


def jobs_at(runs: Sequence[SimulatedRun], times: Sequence[float]) -> tuple[list[int], list[int]]:
    """Jobs that run, and jobs that wait, at each of the times."""
    running, waiting = [0] * len(times), [0] * len(times)
    for run in runs:
        changes = [(run.job.submitted, 0), *run.sizes]
        for (start, size), (end, _) in pairwise(changes):
            for i in _between(times, start, end):
                (running if size else waiting)[i] += 1
    return running, waiting


def _between(times: Sequence[float], start: float, end: float) -> range:
    return range(bisect_left(times, start), bisect_left(times, end))
