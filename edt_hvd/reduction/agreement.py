"""What all workers have agreed on by the headers of the present world's steps."""

from collections.abc import Sequence

from edt_hvd.reduction import header
from edt_hvd.reduction.header import Header, Loss, Report
from edt_hvd.world import world

_stop_agreed = False
_lengths_agreed = False


def stop_agreed() -> bool:
    """Whether all workers have agreed, by the header of the same step, to form a new world."""
    return _stop_agreed


def reset() -> None:
    """A new world was formed."""
    global _stop_agreed, _lengths_agreed
    _stop_agreed = _lengths_agreed = False


def exchange(reports: Sequence[Report], losses: Sequence[Loss] = (), capacity: int = 0) -> Header:
    """Exchange the header (`header.exchange`), and note whether all workers are to stop.

    Raises:
        GradientError: first in a world, the workers' reports differ in length; or as `header.exchange`.
    """
    global _stop_agreed, _lengths_agreed
    if not _lengths_agreed:
        header.check_lengths([len(report) for report in reports])
        _lengths_agreed = True
    found = header.exchange(world.current().stop_wanted, losses, capacity, reports)
    _stop_agreed = _stop_agreed or found.stop_wanted
    return found
