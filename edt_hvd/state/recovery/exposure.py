"""Whether a loss may find a worker between a change of its parameters and the commit that follows.

There a rollback needs a full copy. A worker notices a loss only in a collective. So where none is called
between the first ``optimizer.step()`` after a commit and the next commit, none can fail there, and a worker
that has finished a reduction runs on to its commit. Two stretches are told apart, of which each is looked at
every time: the one within an epoch, and the one from the last step of an epoch to the beginning of the next,
in which scripts validate. Until the first of a kind has been seen, it is taken to have collectives.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass
class Exposure:
    """What has been seen of both stretches.

    Attributes:
        within: whether collectives were called between a step and its commit; None while unknown.
        at_end: the same of the end of an epoch.
    """

    within: bool | None = None
    at_end: bool | None = None

    def note(self, exposed: bool, is_end: bool) -> None:
        """A stretch is over."""
        if is_end:
            self.at_end = bool(self.at_end) or exposed
        else:
            self.within = bool(self.within) or exposed

    def needs_copy(self, may_end: Callable[[], bool]) -> bool:
        """Whether the next stretch needs a full copy; `may_end`: its step may be the last of an epoch."""
        return self.within is not False or (self.at_end is not False and may_end())
