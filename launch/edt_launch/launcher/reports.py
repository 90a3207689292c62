"""What the driver does, as events."""

import signal
from collections.abc import Callable, Collection
from dataclasses import asdict
from typing import Any

from edt_launch.core.events import Event, new
from edt_launch.membership.protocol import (
    Action,
    Failed,
    Finish,
    Late,
    Left,
    Missing,
    Noticed,
    Waiting,
    Worker,
)

Sink = Callable[[Event], None]
"""Takes events."""


class Reports:
    """Makes events of what the driver does.

    Args:
        sink: takes them.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def send(self, event: str, **content: Any) -> None:
        """Send an event."""
        self._sink(new(event, **content))

    def started(self, worker: Worker) -> None:
        """Send the event of a worker that is being started; one for each of its devices."""
        devices = [None] if worker.slot.device is None else worker.slot.device.split(",")
        for device in devices:
            self.send("started", **{**place_of(worker), "device": device}, rank=worker.rank)

    def gang(self, workers: Collection[Worker]) -> None:
        """Send the event of a world whose members know one another without our help."""
        ranks = {str(worker.id): worker.rank for worker in workers}
        reason = "all processes have been started"
        self.send("world", generation=0, size=len(ranks), previous_size=None, ranks=ranks, reason=reason)

    def tell(self, action: Action) -> None:
        """Send the event of an action that is to be told."""
        match action:
            case Failed():
                self._failed(action)
            case Noticed(worker):
                self.send("leaving", **place_of(worker), rank=worker.rank, reason=worker.notice)
            case Waiting():
                told = asdict(action) | {"missing": [_missing(lack) for lack in action.missing]}
                self.send("waiting", **told)
            case Late(workers):
                told = asdict(action) | {"workers": [place_of(worker) for worker in workers]}
                self.send("slow_start", **told)
            case Left(worker):
                self.send("left", worker=worker.id)
            case Finish(succeeded):
                told = {"reason": action.reason, "left": action.left, "aborted": action.aborted}
                self.send("finished", exit_code=0 if succeeded else 1, **told)

    def _failed(self, action: Failed) -> None:
        self.send(
            "failed",
            **place_of(action.worker),
            rank=action.worker.rank,
            exit_code=action.exit_code,
            signal=signal_name(action.exit_code),
            reason=action.reason,
            retry_after=action.retry_after,
        )


def place_of(worker: Worker) -> dict[str, Any]:
    """The worker and where it runs, as events have it."""
    return {
        "worker": worker.id,
        "host": worker.slot.host,
        "slot": worker.slot.index,
        "device": worker.slot.device,
    }


def _missing(lack: Missing) -> dict[str, Any]:
    place = {"host": lack.slot.host, "slot": lack.slot.index}
    return place | {"reason": lack.reason, "retry_after": lack.retry_after}


def signal_name(exit_code: int) -> str | None:
    """The signal behind an exit code: a shell's 128 + number, or a process's -number."""
    try:
        return signal.Signals(-exit_code if exit_code < 0 else exit_code - 128).name
    except ValueError:
        return None
