"""What has become of one run of the workers, and which failure ended it: pure folds over its events."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from edt_launch.core.history import events
from edt_launch.core.history.failure_text import CAUSE, FIRST_FAILURE, QUOTE
from edt_launch.launcher.cause import Cause
from edt_launch.launcher.failing_slots import FailingSlots

STOP_SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")
"""Signals by which a worker is told to stop; one that died of them was not the first to fail."""

PEER_LOST = ("HorovodInternalError", "Connection closed by peer", "Connection reset by peer")
"""What the last lines of a worker say that failed because another one had gone."""


@dataclass(frozen=True)
class Failures:
    """The failures of a job, in the order in which they were noticed."""

    open: tuple[events.Failed, ...] = ()
    survived: tuple[events.Failed, ...] = ()
    """Those after which the job trained on."""
    is_formed_anew: bool = False

    def observe(self, event: events.Event) -> "Failures":
        """The failures after one more event."""
        match event:
            case events.Failed():
                return Failures((*self.open, event), self.survived)
            case events.World():
                return replace(self, is_formed_anew=bool(self.open))
            case events.Progress() if self.is_formed_anew:
                return Failures((), (*self.survived, *self.open))
        return self

    def first(self, last_lines: Callable[[int], Sequence[str]]) -> events.Failed | None:
        """The failure that ended the job, given the last lines of each worker.

        Exits are noticed in an order of chance when one failure brings the others about, so those that look
        like a consequence come last.
        """

        def is_consequence(failure: events.Failed) -> bool:
            text = "\n".join(last_lines(failure.worker))
            return failure.signal in STOP_SIGNALS or any(sign in text for sign in PEER_LOST)

        candidates = self.open or self.survived[-1:]
        return next((f for f in candidates if not is_consequence(f)), candidates[0] if candidates else None)


@dataclass(frozen=True)
class RunSummary:
    """One run of the workers."""

    next_worker: int = 0
    """A serial number that no worker of the job has had."""
    failures: Failures = field(default_factory=Failures)
    failing_slots: FailingSlots = field(default_factory=FailingSlots)
    early_exits: tuple[events.Failed, ...] = ()
    """Of members of a world, with exit code 0 before their training function has returned."""
    is_fatal: bool = False
    """Whether the last failure ended the run."""
    has_started: bool = False
    """Whether a worker was started."""
    has_been_ready: bool = False
    """Whether one has come to an elastic function."""
    has_trained: bool = False
    has_checkpointed: bool = False
    has_returned: bool = False
    """Whether the training function had returned where checkpoints are written."""
    outcome: events.Finished | None = None

    @property
    def reason(self) -> str:
        """Why it ended, in words; may be empty."""
        return self.outcome.reason if self.outcome is not None else ""

    def observe(self, event: events.Event) -> "RunSummary":
        """The run after one more event."""
        after = replace(
            self, failures=self.failures.observe(event), failing_slots=self.failing_slots.observe(event)
        )
        match event:
            case events.Started(worker):
                return replace(after, has_started=True, next_worker=max(self.next_worker, worker + 1))
            case events.Ready():
                return replace(after, has_been_ready=True)
            case events.World():
                return replace(after, has_trained=True)
            case events.Failed(worker, exit_code=exit_code):
                is_early = exit_code == 0 and worker in self.failing_slots.world
                early = (*self.early_exits, event) if is_early else self.early_exits
                return replace(after, is_fatal=event.retry_after is None, early_exits=early)
            case events.Finished():
                return replace(after, outcome=event)
            case events.Checkpointed():
                return replace(after, has_checkpointed=True, has_returned=event.last)
        return after


LONGEST_QUOTED = 400
"""Characters of a quoted line: a message has to fit a line of `events.jsonl` that everybody reads."""

SHOWN_EXITS = 4
"""Workers that a message names."""


def describe(failure: events.Failed, lines: Sequence[str], log: Path, cause: Cause | None = None) -> str:
    """The message about the failure that ended a job: the last thing a user sees, and its cause the last.

    Args:
        failure: that of the worker that failed first.
        lines: its last ones.
        log: where all of them are.
        cause: what `cause_of` has found in them, or in earlier ones.
    """
    said = [f"{QUOTE}{_cut(line)}" for line in lines if cause is None or line != cause.line]
    if not lines:
        said = ["  (it has printed nothing)"]
    who, how = f"rank {failure.rank} on {failure.host}", failure.how_it_ended
    head = f"{FIRST_FAILURE}{how}" if how.startswith(who) else f"{FIRST_FAILURE}{who}, {how}"
    named = [f"{CAUSE}{cause}"] if cause else []
    return "\n".join([head, *said, f"log: {log}", *named])


def describe_exits(exits: Sequence[events.Failed], log: Path) -> str:
    """The message about workers that have ended by themselves in a job that succeeded; `log`: the first's."""
    ranks = [f"rank {each.rank} on {each.host}" for each in exits]
    more = f" and {len(ranks) - SHOWN_EXITS} more" if len(ranks) > SHOWN_EXITS else ""
    return (
        f"the job succeeded, but {', '.join(ranks[:SHOWN_EXITS])}{more} ended with exit code 0 in the middle "
        "of training, as by sys.exit(0), and the others went on without. Let the training function return, "
        f"after the same commit on every worker; log: {log}"
    )


def _cut(line: str) -> str:
    return line if len(line) <= LONGEST_QUOTED else f"{line[:LONGEST_QUOTED]}..."


def without_lines(message: str) -> str:
    """A message that `describe` is part of, without what the worker has printed if the cause is known."""
    lines = message.splitlines()
    is_named = any(line.startswith(CAUSE) for line in lines)
    return "\n".join(line for line in lines if not (is_named and line.startswith(QUOTE)))
