"""Notices: a command of the administrator's is run for each job that has ended.

It gets the job as JSON on its standard input. Which ends were told is kept in the database, so that none is
left out while the service is down.
"""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from typing import IO, Any

import structlog

from edt_launch.service.db.store import Store
from edt_launch.service.jobs.records import JobRecord

log = structlog.get_logger()

INTERVAL = 1.0
"""Seconds between two looks at what has ended."""

PATIENCE = 60.0
"""Seconds that a command may take."""

MEMORY = "notices"
"""Key under which the number of the last end that was told is kept."""

AT_ONCE = 100
"""Ends that are read at a time."""

SHOWN = 500
"""Bytes of its standard error that the log has."""


class Notifier:
    """Runs a command for each end of a job since it was first set up, one after another.

    Args:
        command: words as a shell would split them; None to tell nobody, and to forget where it was.
        store: of the service.
        view: a job as JSON.
        stop: ends a command that runs; its notice is repeated by the next service.
        patience: seconds that a command may take.
    """

    def __init__(
        self,
        command: str | None,
        store: Store,
        view: Callable[[JobRecord], Mapping[str, Any]],
        stop: threading.Event,
        patience: float = PATIENCE,
    ) -> None:
        self._words = shlex.split(command or "")
        self._store = store
        self._view = view
        self._stop = stop
        self._patience = patience
        told = store.memory.get(MEMORY, {})
        if not self._words or "number" not in told:
            self._remember(store.jobs.last_transition() if self._words else None)

    def look(self) -> None:
        """Tell of all jobs that have ended meanwhile."""
        told = self._store.memory.get(MEMORY, {}).get("number")
        if told is None:
            return
        if (newest := self._store.jobs.last_transition()) < told:  # deleted with their job: counted again
            self._remember(told := newest)
        for ending in self._store.jobs.endings(told, AT_ONCE):
            job = self._store.jobs.some([ending.job]).get(ending.job)
            if job is not None and not self._tell(job):
                return
            self._remember(ending.number)

    def _remember(self, number: int | None) -> None:
        self._store.memory.set(MEMORY, {} if number is None else {"number": number})

    def _tell(self, job: JobRecord) -> bool:
        """Run the command; False if the service ended meanwhile."""
        with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as said:
            given.write(json.dumps(self._view(job)).encode() + b"\n")
            given.seek(0)
            try:
                process = subprocess.Popen(
                    self._words,
                    stdin=given,
                    stdout=subprocess.DEVNULL,
                    stderr=said,
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                log.warning("the command for notices cannot be started", job=job.id, reason=str(error))
                return True
            code = self._wait(process)
            if code is None and self._stop.is_set():
                return False
            if code != 0:
                reason = f"no end after {self._patience:g} s" if code is None else f"exit code {code}"
                log.warning("a notice has failed", job=job.id, reason=reason, said=_tail(said))
            return True

    def _wait(self, process: subprocess.Popen[bytes]) -> int | None:
        """The exit code of a command; None if it was killed because it took too long, or of `stop`."""
        until = time.monotonic() + self._patience
        while time.monotonic() < until and not self._stop.is_set():
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.wait(0.2)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def _tail(said: IO[bytes]) -> str:
    size = said.seek(0, os.SEEK_END)
    said.seek(max(0, size - SHOWN))
    return said.read().decode(errors="replace").strip()
