"""Whether a job that has ended is started again: a pure decision."""

from dataclasses import dataclass
from enum import Enum

from edt_launch.core.errors import HOST_LOST
from edt_launch.core.history.events import Failed
from edt_launch.launcher.run_summary import RunSummary
from edt_launch.launcher.termination import Ending

NOTICE_DELAY = 60.0
"""Seconds for which slots are left alone that their workers were told to give up."""


@dataclass(frozen=True)
class Restart:
    """Start the job again, because of `reason`; in `delay` seconds, or as soon as the allocation changes."""

    reason: str
    delay: float = 0.0


class NoRestart(Enum):
    """Leave it at that."""

    GIVE_UP = "for good"
    LEAVE = "until somebody starts the job again, which then goes on"


def is_loss(failure: Failed, is_remote: bool) -> bool:
    """Whether a worker was lost, by a signal, say, or with its host, not ended by an error of its own."""
    is_gone = is_remote and failure.exit_code == HOST_LOST
    return failure.signal is not None or failure.exit_code == 0 or is_gone


def decide(
    run: RunSummary, ending: Ending, ended_by: Failed | None, is_lost: bool, restarts: int, most: int
) -> Restart | NoRestart:
    """Whether to start the job again, of which `restarts` of at most `most` restarts are used up.

    The loss of all workers that had the state is made good by a restart. An error of the
    script would come again, unless the job has got on since it started, so that it may be a rare one. A job
    that is to pause is left, whatever else it has lost on the way, unless it would fail again.

    `ended_by` is the first of the failures that ended the run, None if none did (too few workers, say);
    `is_lost` whether that was the loss of a worker or its host, not an error of the script.
    """
    has_left = run.outcome is not None and run.outcome.left
    if ending.is_wanted or (run.outcome is not None and run.outcome.succeeded):
        return NoRestart.GIVE_UP
    has_got_on = run.has_checkpointed and not run.has_returned
    is_worth_it = has_left or (ended_by is not None and (is_lost or has_got_on))
    if ending.is_pausing and (is_worth_it or ended_by is None):
        return NoRestart.LEAVE
    has_begun = run.has_trained or (restarts > 0 and is_lost)
    if not is_worth_it or not has_begun or restarts >= most:
        return NoRestart.GIVE_UP
    return Restart(run.reason, NOTICE_DELAY if has_left else 0.0)
