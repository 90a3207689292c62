"""What all workers have agreed on by the headers of the present world's steps."""

from collections.abc import Callable, Sequence

from edt_hvd.errors import GradientError
from edt_hvd.reduction import comparison, header
from edt_hvd.reduction.comparison import Description
from edt_hvd.reduction.header import Header, Loss, Report
from edt_hvd.world import world

_stop_agreed = False
_compared = False
_loops = 0
"""Over loaders that this worker has begun since the last header."""


def stop_agreed() -> bool:
    """Whether all workers have agreed, by the header of the same step, to form a new world."""
    return _stop_agreed


def reset() -> None:
    """A new world was formed."""
    global _stop_agreed, _compared, _loops
    _stop_agreed = _compared = False
    _loops = 0


def note_loop() -> None:
    """A loop over a loader begins."""
    global _loops
    _loops += 1


def exchange(
    reports: Sequence[Report],
    losses: Sequence[Loss] = (),
    capacity: int = 0,
    describe: Callable[[], Description] = dict,
) -> Header:
    """Exchange the header (`header.exchange`), and note whether all workers are to stop.

    Args:
        reports, losses, capacity: as for `header.exchange`.
        describe: gives what the workers compare first in a world: what they train, and how.

    Raises:
        GradientError: first in a world, the descriptions differ, or the reports in length; later, a loop
            over a loader was left on some workers only; or as `header.exchange`.
    """
    global _stop_agreed, _compared, _loops
    is_first = not _compared
    if is_first:
        lengths = {"the number of values to report": str([len(report) for report in reports])}
        differs = comparison.first_difference(lambda: {**describe(), **lengths}, "description")
        if differs is not None:
            raise GradientError(
                f"the workers do not train the same: {differs}. Each worker runs the script from its "
                "beginning, so make models and optimizers there, in an order that is the same everywhere (a "
                "set has none), give them to the TorchState, and change them by what the state says"
            )
        _compared = True
    found = header.exchange(world.current().stop_wanted, losses, capacity, reports, _loops)
    _loops = 0
    if not is_first:  # a newcomer may have had loops of its own before
        header.check_loops(found.loops)
    _stop_agreed = _stop_agreed or found.stop_wanted
    return found
