"""Whether a job that has ended is started again: a pure decision."""

from dataclasses import dataclass

from edt_launch.core.events import Failed
from edt_launch.launcher.connectors.connector import HOST_LOST

NOTICE_DELAY = 60.0
"""Seconds for which slots are left alone that their workers were told to give up."""


@dataclass(frozen=True)
class End:
    """How a run of the workers has ended.

    Attributes:
        succeeded: whether the training function has returned everywhere.
        is_wanted: whether a signal has told the launcher to end the job.
        is_pausing: whether a signal has told it to have all workers leave.
        has_trained: whether there was a world in this run.
        has_checkpointed: whether a checkpoint was written in this run.
        has_returned: whether the training function had returned on the coordinator.
        ended_by: the first of the failures that ended the job; None if none did, too few workers, say.
        is_lost: whether that failure was the loss of a worker or its host, not an error of the script.
        has_left: whether the last workers that had the state were told to leave.
        reason: why the job ended, in words; may be empty.
    """

    succeeded: bool = False
    is_wanted: bool = False
    is_pausing: bool = False
    has_trained: bool = False
    has_checkpointed: bool = False
    has_returned: bool = False
    ended_by: Failed | None = None
    is_lost: bool = False
    has_left: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Restart:
    """Start the job again, because of `reason`; in `delay` seconds, or as soon as the allocation changes."""

    reason: str
    delay: float = 0.0


@dataclass(frozen=True)
class GiveUp:
    """Leave it at that, because of `reason`."""

    reason: str


@dataclass(frozen=True)
class Leave:
    """Leave it at that until somebody starts the job again, which then goes on."""

    reason: str


def is_loss(failure: Failed, is_remote: bool) -> bool:
    """Whether a worker was lost, by a signal, say, or with its host, not ended by an error of its own."""
    is_gone = is_remote and failure.exit_code == HOST_LOST
    return failure.signal is not None or failure.exit_code == 0 or is_gone


def decide(end: End, restarts: int, most: int) -> Restart | GiveUp | Leave:
    """Whether to start the job again.

    The loss of all workers that had the state is made good by a restart. An error of the
    script would come again, unless the job has got on since it started, so that it may be a rare one. A job
    that is to pause is left, whatever else it has lost on the way, unless it would fail again.

    Args:
        end: how the last run has ended.
        restarts: how often the job has been started again so far.
        most: how often it may be.
    """
    if end.succeeded:
        return GiveUp("the job has succeeded")
    if end.is_wanted:
        return GiveUp("it was told to end")
    if end.is_pausing and (_reason(end) is not None or end.ended_by is None):
        return Leave(end.reason)
    if not end.has_trained and not (restarts and end.is_lost):
        return GiveUp("it had not begun to train")
    reason = _reason(end)
    if reason is None:
        return GiveUp(_why_not(end))
    if restarts >= most:
        return GiveUp(f"it has been restarted {restarts} of {most} times")
    return Restart(reason, NOTICE_DELAY if end.has_left else 0.0)


def _reason(end: End) -> str | None:
    """Why a restart is worth trying; None if it is not."""
    if end.has_left:
        return end.reason
    if end.ended_by is None:
        return None
    if end.is_lost or (end.has_checkpointed and not end.has_returned):
        return end.reason
    return None


def _why_not(end: End) -> str:
    if end.ended_by is None:
        return "no worker was lost"
    if end.has_returned:
        return "the script has failed after training"
    return "the script has failed, and would fail the same way again"
