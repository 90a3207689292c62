"""How long the logs of a job were when: a row of time, size and name whenever one has grown.

Lines of logs are what programs print, without times. By these rows those of a certain time are found.
"""

import os
import re
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from edt_launch.core.appender import Appender, Complain
from edt_launch.core.run_dir import RunDir

INTERVAL = 10.0
"""Seconds between two looks at the logs, at least."""

LOOKS = 1000
"""Looks in the life of a job, roughly: of one that is older, they are further apart."""

MOST = 2000
"""Entries of the folder that are looked at: a job may put there what it likes."""

_NAME = re.compile(r"[\w.-]{1,64}\.log", re.ASCII)
_ROW = re.compile(rb"(\d{1,11}\.\d) (\d{1,16}) ([\w.-]{1,68})")


class Part(NamedTuple):
    """Bytes of a log; `end` is None for all after `start`."""

    start: int
    end: int | None


class LogTimes:
    """Appends rows to the job's file of them.

    Args:
        paths: where the logs are, and the file.
        complain: is told when the file cannot be written.
        now: seconds since 1970, as everywhere.
    """

    def __init__(self, paths: RunDir, complain: Complain, now: float) -> None:
        self._folder = paths.log
        self._file = Appender(paths.log_times, complain)
        self._sizes: dict[str, int] = {}
        self._first = self._last = now
        self._look(now)

    def observe(self, now: float) -> None:
        """Look at the logs if it is time to."""
        pause = max(INTERVAL, (now - self._first) / LOOKS)
        if not 0 <= now - self._last < pause:  # a clock may be set back
            self._look(now)

    def close(self, now: float) -> None:
        """Look at the logs for the last time."""
        self._look(now)
        self._file.close()

    def _look(self, now: float) -> None:
        before, self._last = self._last, now
        try:
            with os.scandir(self._folder) as entries:
                sizes = {
                    entry.name: entry.stat(follow_symlinks=False).st_size
                    for entry in islice(entries, MOST)
                    if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
                }
        except OSError:  # the job may do with its folder as it likes
            return
        for name, size in sizes.items():
            known = self._sizes.get(name, 0)
            if size and not known and before < now:
                self._file.write(f"{before:.1f} 0 {name}\n")
            if size != known:
                self._file.write(f"{now:.1f} {size} {name}\n")
        self._sizes = sizes
        self._file.flush()


def part(rows: Iterable[bytes], name: str, since: float | None, until: float | None) -> Part | None:
    """Where in the log `name` the lines of a time are, with those between two looks at either end.

    Args:
        rows: those of `LogTimes`; what is none is passed over.
        name: of the log's file.
        since, until: seconds since 1970; None for no bound.

    Returns:
        The bytes; None if nothing is known of this log.
    """
    start, end, is_known = 0, None, False
    for row in rows:
        match = _ROW.fullmatch(row)
        if match is None or match[3].decode() != name:
            continue
        time, size, is_known = float(match[1]), int(match[2]), True
        if since is not None and time < since:
            start = size
        elif until is not None and time >= until:
            end = size
            break
    return Part(start, end) if is_known else None
