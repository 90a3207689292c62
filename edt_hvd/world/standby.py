"""What a worker costs while it waits at the rendezvous: processor time, and memory of its own."""

import time
from dataclasses import dataclass

import psutil

from edt_messages import messages


@dataclass(frozen=True)
class Standby:
    """A worker that has come to the rendezvous.

    Attributes:
        since: when, in seconds of a monotonic clock.
        processor: seconds of processor time that it had used by then.
        private: bytes of memory that it shares with no other process; None where the system does not show it.
    """

    since: float
    processor: float
    private: int | None

    @classmethod
    def begin(cls) -> "Standby":
        """A worker that comes to the rendezvous now."""
        return cls(time.monotonic(), time.process_time(), private_memory())

    def cost(self, now: float, processor: float) -> messages.Standby:
        """The cost of waiting until `now`, with `processor` seconds used by then."""
        return messages.Standby(now - self.since, processor - self.processor, self.private)


def private_memory() -> int | None:
    """Bytes of memory that this process shares with no other; None where the system does not show it."""
    try:
        return int(psutil.Process().memory_full_info().uss)
    except psutil.Error:
        return None
