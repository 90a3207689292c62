"""What the driver does, as events."""

import signal
from collections.abc import Callable, Collection

from edt_launch.core import events
from edt_launch.core.event_log import stamped
from edt_launch.membership.protocol import Action, Failed, Finish, Late, Left, Noticed, Waiting, Worker

Sink = Callable[[events.Event], None]
"""Takes events."""


class Reports:
    """Makes events of what the driver does.

    Args:
        sink: takes them.
    """

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def send(self, event: events.Event) -> None:
        """Send an event that happens now."""
        self._sink(stamped(event))

    def started(self, worker: Worker) -> None:
        """Send the event of a worker that is being started; one for each of its devices."""
        devices = [None] if worker.slot.device is None else worker.slot.device.split(",")
        for device in devices:
            self.send(events.Started(worker.id, worker.slot.host, worker.slot.index, device, worker.rank))

    def gang(self, workers: Collection[Worker]) -> None:
        """Send the event of a world whose members know one another without our help."""
        ranks = {worker.id: worker.rank for worker in workers}
        self.send(events.World(0, len(ranks), None, ranks, "all processes have been started"))

    def report(self, action: Action) -> None:
        """Send the event of an action that is to be told."""
        match action:
            case Failed(worker, code, retry_after, reason):
                place = place_of(worker)
                self.send(events.Failed(*place, worker.rank, code, signal_name(code), reason, retry_after))
            case Noticed(worker):
                self.send(events.Leaving(*place_of(worker), worker.rank, worker.notice))
            case Waiting(have, need, seconds, allocated, lacks):
                missing = tuple(
                    events.MissingWorker(lack.slot.host, lack.slot.index, lack.reason, lack.retry_after)
                    for lack in lacks
                )
                self.send(events.Waiting(have, need, seconds, allocated, missing))
            case Late(workers, seconds, longest, waited, limit):
                places = tuple(events.Place(*place_of(worker)) for worker in workers)
                self.send(events.SlowStart(places, seconds, longest, waited, limit))
            case Left(worker):
                self.send(events.Left(worker.id))
            case Finish(succeeded, reason, left, aborted):
                self.send(events.Finished(0 if succeeded else 1, reason, left, aborted))


def place_of(worker: Worker) -> tuple[int, str, int, str | None]:
    """The worker and where it runs, as the first fields of events have it."""
    return worker.id, worker.slot.host, worker.slot.index, worker.slot.device


def signal_name(exit_code: int) -> str | None:
    """The signal behind an exit code: a shell's 128 + number, or a process's -number."""
    try:
        return signal.Signals(-exit_code if exit_code < 0 else exit_code - 128).name
    except ValueError:
        return None
