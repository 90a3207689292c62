"""A picture of a job: its loss and its number of workers over the optimizer steps, drawn from its events."""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from edt_launch.core.history.events import Event, Progress

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WORKERS_COLOUR = "#d55e00"
LOSS_COLOUR = "#0072b2"


def curve(events: Iterable[Event]) -> list[Progress]:
    """The reports that make the picture, in the order of their steps.

    After a lost worker some steps are done again; of two reports of one step the later counts.
    """
    reports = {event.step: event for event in events if isinstance(event, Progress)}
    return [reports[step] for step in sorted(reports)]


def draw(points: list[Progress], path: Path, title: str) -> None:
    """Write the picture as a PNG to `path`, replacing it in one go.

    Raises:
        ImportError: matplotlib is not installed.
        ValueError: there are no points.
    """
    if not points:
        raise ValueError(
            "nothing to draw: the job has reported no progress; commit the state after every step"
        )
    import matplotlib as mpl  # here: half a second that only a finished job has to pay

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (upper, lower) = plt.subplots(
        2, 1, sharex=True, figsize=(9, 5), height_ratios=(2, 1), layout="constrained"
    )
    figure.suptitle(title)
    losses = [(point.step, loss) for point in points if (loss := point.number("loss")) is not None]
    upper.plot([step for step, _ in losses], [loss for _, loss in losses], color=LOSS_COLOUR, linewidth=1.2)
    upper.set(ylabel="loss of the whole batch", yscale="log")
    steps, sizes = [point.step for point in points], [point.size for point in points]
    lower.fill_between(steps, sizes, step="post", color=WORKERS_COLOUR, alpha=0.3)
    lower.step(steps, sizes, where="post", color=WORKERS_COLOUR)
    lower.set(ylabel="workers", xlabel="optimizer steps", ylim=(0, max(sizes) + 0.8))
    lower.set(xlim=(0, max(steps[-1], 1)), yticks=range(max(sizes) + 1))
    _mark_resizes(upper, lower, points)
    unfinished = path.with_name(path.name + ".part")
    figure.savefig(unfinished, dpi=120, format="png")
    plt.close(figure)
    unfinished.replace(path)


def _mark_resizes(upper: "Axes", lower: "Axes", points: list[Progress]) -> None:
    for before, after in pairwise(points):
        if before.size == after.size:
            continue
        for axes in (upper, lower):
            axes.axvline(after.step, color="grey", linewidth=0.8, linestyle=":")
        upper.annotate(
            f"{before.size} \N{RIGHTWARDS ARROW} {after.size}",
            (after.step, 0.97),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            verticalalignment="top",
            color=WORKERS_COLOUR,
        )
