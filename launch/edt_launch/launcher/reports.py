"""What the driver does, as events."""

from collections.abc import Callable, Collection

from edt_launch.core import events
from edt_launch.core.event_log import stamped
from edt_launch.membership.protocol import Worker

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
            self.send(events.Started(*worker.where[:3], device, worker.rank))

    def gang(self, workers: Collection[Worker]) -> None:
        """Send the event of a world whose members know one another without our help."""
        ranks = {worker.id: worker.rank for worker in workers}
        self.send(events.World(0, len(ranks), None, ranks, "all processes have been started"))
