"""What the discovery script shows, whenever that changes."""

import os
import select
import time
from collections.abc import Iterator
from pathlib import Path

from edt_launch.launcher.shown import Complaints, Shown, discover
from edt_launch.watching import Watch

WATCH_INTERVAL = 0.05
"""Seconds between two looks at the allocation file's metadata, where nobody tells of its changes."""

DISCOVERY_INTERVAL = 1.0
"""Seconds after which the discovery script is run even if the file looks untouched."""


def changes(script: str, complain: Complaints) -> Iterator[Shown]:
    """Everything that the script (a path) shows, once; waits for what comes next, without end.

    Args:
        script: it is run when the allocation file has changed, and now and then.
        complain: told what is wrong with it.
    """
    path = os.environ.get("EDT_ALLOCATION")
    watch = Watch(Path(path)) if path is not None else None
    shown = Shown()
    looked: tuple[int, int, int] | None = None
    ran_at = float("-inf")
    while True:
        now, look = time.monotonic(), _metadata(path)
        if look != looked or now - ran_at >= DISCOVERY_INTERVAL:
            looked, ran_at = look, now
            seen = discover(script, complain)
            if seen.slots:
                complain.settle()
            if seen.slots and seen != shown:
                shown = seen
                yield shown
        if watch is None:
            time.sleep(WATCH_INTERVAL)
        else:
            select.select([watch], [], [], WATCH_INTERVAL)
            watch.clear()


def _metadata(path: str | None) -> tuple[int, int, int] | None:
    try:
        stat = os.stat(path) if path else None
    except FileNotFoundError:
        return None
    return (stat.st_mtime_ns, stat.st_ino, stat.st_size) if stat else None
