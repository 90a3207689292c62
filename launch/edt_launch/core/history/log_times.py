"""The sizes of a job's logs over time: a row of time, size and name whenever a log has grown.

Programs print lines without times. The rows tell which part of a log was written when.
"""

import os
import re
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from edt_launch.core.files.appender import Appender, Complain
from edt_launch.core.run_dir import RunDir

SAMPLE_INTERVAL = 10.0
"""Seconds between two samples, at least."""

SAMPLES = 1000
"""Two samples are at most this part of the job's age apart, or `SAMPLE_INTERVAL`."""

MAX_ENTRIES = 2000
"""Entries of the folder that are sampled: a job may put there what it likes."""

_NAME = re.compile(r"[\w.-]{1,64}\.log", re.ASCII)
_ROW = re.compile(rb"(\d{1,11}\.\d{1,9}) (\d{1,16}) ([\w.-]{1,68})")


class LogRange(NamedTuple):
    """Bytes of a log; `end` is None for all after `start`."""

    start: int
    end: int | None


class LogTimes:
    """Samples the sizes of a job's logs, and appends them to its `log_times`.

    Args:
        paths: where the logs are, and the file.
        complain: is told when the file cannot be written.
        now: seconds since 1970, here and in the methods.
    """

    def __init__(self, paths: RunDir, complain: Complain, now: float) -> None:
        self._folder = paths.log
        self._file = Appender(paths.log_times, complain)
        self._sizes: dict[str, int] = {}
        self._first = self._last = now
        self._sample(now)

    def observe(self, now: float) -> None:
        """Take a sample if one is due."""
        pause = max(SAMPLE_INTERVAL, (now - self._first) / SAMPLES)
        if not 0 <= now - self._last < pause:  # a clock may be set back
            self._sample(now)

    def close(self, now: float) -> None:
        """Take the last sample."""
        self._sample(now)
        self._file.close()

    def _sample(self, now: float) -> None:
        before, self._last = self._last, now
        try:
            with os.scandir(self._folder) as entries:
                sizes = {
                    entry.name: entry.stat(follow_symlinks=False).st_size
                    for entry in islice(entries, MAX_ENTRIES)
                    if _NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
                }
        except OSError:  # the job may do with its folder as it likes
            return
        for name, size in sizes.items():
            known = self._sizes.get(name, 0)
            if size and not known and before < now:
                self._file.write(f"{before} 0 {name}\n")
            if size != known:
                self._file.write(f"{now} {size} {name}\n")
        self._sizes = sizes
        self._file.flush()


def part(rows: Iterable[bytes], name: str, since: float | None, until: float | None) -> LogRange | None:
    """The part of a log that was written in a period, widened to whole samples at either end.

    Args:
        rows: of `log_times`; malformed ones are passed over.
        name: the log's file name.
        since, until: seconds since 1970; None for no bound.

    Returns:
        The part; None if no row is about this log.
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
    return LogRange(start, end) if is_known else None
