"""What has become of one run of the workers so far: a pure fold over its events."""

from dataclasses import dataclass, field, replace

from edt_launch.core import events
from edt_launch.launcher.failures import Failures


@dataclass(frozen=True)
class RunSummary:
    """One run of the workers.

    Attributes:
        next_worker: serial number that no worker of the job has had.
        failures: of its workers.
        is_fatal: whether the last failure ended the run.
        has_started: whether a worker was started.
        has_been_ready: whether one has come to an elastic function.
        has_trained: whether there was a world.
        has_checkpointed: whether a checkpoint was written.
        has_returned: whether the training function had returned where they are written.
        has_left: whether the last workers that had the state were told to leave.
    """

    next_worker: int = 0
    failures: Failures = field(default_factory=Failures)
    is_fatal: bool = False
    has_started: bool = False
    has_been_ready: bool = False
    has_trained: bool = False
    has_checkpointed: bool = False
    has_returned: bool = False
    has_left: bool = False

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
                return replace(after, has_left=event.left)
            case events.Checkpointed():
                return replace(after, has_checkpointed=True, has_returned=event.last)
        return after
