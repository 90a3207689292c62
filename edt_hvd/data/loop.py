"""A loop over a loader."""

import gc
import sys
from collections.abc import Iterator

from edt_hvd.data.step import Step
from edt_hvd.reduction import usage_checks


class Loop(Iterator[Step]):
    """The steps that are left of an epoch; `enumerate` numbers them by their place in the epoch.

    A loop that begins in the middle of an epoch, after a resize for instance, begins with the step of that
    number, and so does the count: an `enumerate` around this iterator is moved on past the steps before it.

    Args:
        steps: gives them.
    """

    def __init__(self, steps: Iterator[Step]) -> None:
        self._steps = steps
        self._has_begun = False
        self._skipped: Step | None = None

    def __next__(self) -> Step:
        if self._skipped is not None:
            return self._skipped
        step = next(self._steps)
        if not self._has_begun:
            self._has_begun = True
            usage_checks.check_counting(sys._getframe(1))
            if step.index:
                self._skip_before(step)
        return step

    def _skip_before(self, step: Step) -> None:
        """Have whatever enumerates this iterator count the steps before this one; it is not counted yet."""
        self._skipped = step
        try:
            for each in gc.get_referrers(self):
                if type(each) is enumerate:
                    for _ in range(step.index):
                        next(each)
        finally:
            self._skipped = None
