"""What has become of one run of the workers so far: a pure fold over its events."""

from dataclasses import dataclass, field, replace

from edt_launch.core import events
from edt_launch.launcher.failures import Failures


@dataclass(frozen=True)
class RunSummary:
    """One run of the workers."""

    next_worker: int = 0
    """A serial number that no worker of the job has had."""
    failures: Failures = field(default_factory=Failures)
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
        after = replace(self, failures=self.failures.observe(event))
        match event:
            case events.Started(worker):
                return replace(after, has_started=True, next_worker=max(self.next_worker, worker + 1))
            case events.Ready():
                return replace(after, has_been_ready=True)
            case events.World():
                return replace(after, has_trained=True)
            case events.Failed():
                return replace(after, is_fatal=event.retry_after is None)
            case events.Finished():
                return replace(after, outcome=event)
            case events.Checkpointed():
                return replace(after, has_checkpointed=True, has_returned=event.last)
        return after
