"""What a worker costs while it stands at the door: processor time, and memory that it shares with nobody."""

import time
from dataclasses import dataclass
from pathlib import Path

_ROLLUP = Path("/proc/self/smaps_rollup")


@dataclass(frozen=True)
class Standby:
    """A worker that has come to the door.

    Attributes:
        since: when, in seconds of a monotonic clock.
        processor: seconds of processor time that it had used by then.
        private: bytes of memory that are its own; None where the system does not tell.
    """

    since: float
    processor: float
    private: int | None

    @classmethod
    def begin(cls) -> "Standby":
        """A worker that comes to the door now."""
        return cls(time.monotonic(), time.process_time(), private_memory())

    def cost(self, now: float, processor: float) -> dict[str, float | int | None]:
        """What waiting until `now` has cost, with `processor` seconds used: the `standby` message."""
        return {"waited": now - self.since, "processor": processor - self.processor, "private": self.private}


def private_memory() -> int | None:
    """Bytes of this process's memory that no other process shares; None where the system does not tell."""
    try:
        return private_in(_ROLLUP.read_text())
    except OSError:
        return None


def private_in(rollup: str) -> int:
    """The private bytes in the text of Linux's ``smaps_rollup``."""
    lines = (line.split() for line in rollup.splitlines())
    return 1024 * sum(int(words[1]) for words in lines if words[0] in ("Private_Clean:", "Private_Dirty:"))
