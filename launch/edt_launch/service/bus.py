"""How the parts of the service wake each other: topics that are counted up, and nothing else.

What has happened is in the database; a notification says only that looking there is worth while. So one that
is missed costs time until the next look, never correctness.
"""

import threading
from collections import Counter
from enum import StrEnum


class Topic(StrEnum):
    """What may have changed."""

    DESIRED_STATE = "desired state"
    """What users want: new jobs, sizes, pauses, stops, shares, hosts to drain. The loop listens."""
    HOSTS = "hosts"
    """The machines there are. The loop listens."""
    JOBS = "jobs"
    """What jobs are wanted to do, their states, and what they have. Whoever shows them listens."""
    PROGRESS = "progress"
    """How far jobs are, and what they report, which changes all the time. Whoever shows numbers listens."""
    SEARCHES = "searches"
    """What users want of their searches. Their controller listens, and to `JOBS`."""


class Bus:
    """Counts notifications of each topic; any thread may notify and wait."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._versions: Counter[Topic] = Counter()

    def notify(self, *topics: Topic) -> None:
        """Wake everyone who waits for one of these topics."""
        with self._condition:
            self._versions.update(topics)
            self._condition.notify_all()

    def version(self, *topics: Topic) -> int:
        """How often these topics have been notified in all; only ever grows."""
        with self._condition:
            return sum(self._versions[topic] for topic in topics)

    def wait(self, *topics: Topic, seen: int, timeout: float) -> int:
        """Wait until `version(*topics)` is not `seen` any more; what comes before the call is not missed.

        Returns the version now: `seen` if nothing has happened for `timeout` seconds.
        """
        with self._condition:
            self._condition.wait_for(lambda: self.version(*topics) != seen, timeout)
            return self.version(*topics)
