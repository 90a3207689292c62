"""When a job that is to end is made to end: a pure decision."""

import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum

from edt_launch.core.errors import ExitCode

GRACE = 10.0
"""Seconds that the driver has to end its workers before everything is killed."""

PAUSE_SIGNAL = signal.SIGUSR1
"""The signal that makes all workers leave, their state saved."""

CODES = {
    signal.SIGHUP: ExitCode.HUNG_UP,
    signal.SIGINT: ExitCode.INTERRUPTED,
    signal.SIGTERM: ExitCode.TERMINATED,
}
"""The other signals that end a job, and the exit codes they lead to."""

Listen = Callable[[], Iterable[int]]
"""Gives the signals that have come since it was called last, and what else has asked for the same."""


class Step(Enum):
    """What to do now."""

    WAIT = "wait"
    TERMINATE = "terminate"
    """Tell the driver to end the job."""
    PAUSE = "pause"
    """Tell the driver to have the state saved and all workers leave."""
    KILL = "kill"
    """Kill every process of the job."""


@dataclass(frozen=True)
class Ending:
    """How far the end of a job is."""

    first: int | None = None
    """The signal that has asked for the end, if one has."""
    since: float | None = None
    """When the end began, by a signal or because the job is finished; None while it runs."""
    is_told: bool = False
    """Whether the driver has been told."""
    is_pausing: bool = False
    """Whether a signal has asked for all workers to leave."""
    is_pause_told: bool = False
    is_unwanted: bool = False
    """Whether nobody needs what the job does any more."""
    is_urgent: bool = False
    """Whether the user does not want to wait."""
    is_killed: bool = False

    def signalled(self, now: float, number: int) -> "Ending":
        """A signal has come. A Ctrl-C after any other signal means that the user does not want to wait."""
        if number == PAUSE_SIGNAL:
            return replace(self, is_pausing=True)
        if self.first is None:
            return replace(self, first=number, since=now)
        return replace(self, is_urgent=self.is_urgent or number == signal.SIGINT)

    def unwanted(self, now: float) -> "Ending":
        """Nobody needs what the job does any more."""
        return replace(self.finished(now), is_unwanted=True)

    def finished(self, now: float) -> "Ending":
        """The driver says that the job has ended; what is left should be gone soon, too."""
        return self if self.since is not None else replace(self, since=now)

    def decide(self, now: float, grace: float = GRACE, *, has_workers: bool = True) -> tuple["Ending", Step]:
        """What to do at `now` (seconds of a monotonic clock), and the ending after it.

        Before it `has_workers` there is nothing to save.
        """
        if self.is_pausing and not self.is_pause_told and self.since is None:
            ending = replace(self, is_pause_told=True)
            return (ending, Step.PAUSE) if has_workers else (replace(ending, since=now), Step.TERMINATE)
        if self.since is None or self.is_killed:
            return self, Step.WAIT
        if self.is_urgent or now - self.since >= grace:
            return replace(self, is_killed=True), Step.KILL
        if self.is_wanted and not self.is_told:
            return replace(self, is_told=True), Step.TERMINATE
        return self, Step.WAIT

    @property
    def is_wanted(self) -> bool:
        """Whether the job is to end, whatever it has done so far."""
        return self.first is not None or self.is_unwanted

    @property
    def exit_code(self) -> ExitCode | None:
        """What the signal that ended the job leads to; None if none has."""
        return None if self.first is None else CODES[signal.Signals(self.first)]


def signal_name(number: int | None) -> str:
    """What a user calls a signal."""
    return "Ctrl-C" if number == signal.SIGINT else signal.Signals(number or 0).name
