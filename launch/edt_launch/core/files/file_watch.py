"""Being woken when a file may have changed, for whoever looks at it now and then anyway."""

import contextlib
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import watchfiles

log = logging.getLogger(__name__)

STEP = 10
"""Milliseconds between a change and the waking, at most."""


class Watch:
    """Becomes readable, for `select` and its like, when something has happened in a file's folder.

    It only makes looking quicker: where the system does not tell of changes (some network file systems), or
    the folder is not there, it stays silent. The file need not exist.
    """

    def __init__(self, path: Path) -> None:
        self._folder = path.absolute().parent
        self._reading, self._writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="edt-watch", daemon=True)
        self._thread.start()

    def fileno(self) -> int:
        """The descriptor that becomes readable."""
        return self._reading

    def clear(self) -> None:
        """Wait for the next change."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reading, 4096):
                pass

    def close(self) -> None:
        """End the watching."""
        self._stopped.set()
        self._thread.join()
        os.close(self._reading)
        os.close(self._writing)

    def _watch(self) -> None:
        try:
            changes = watchfiles.watch(
                self._folder,
                watch_filter=None,
                debounce=STEP,
                step=STEP,
                stop_event=self._stopped,
                raise_interrupt=False,
                recursive=False,
            )
            for _ in changes:
                with contextlib.suppress(BlockingIOError):  # it is readable already
                    os.write(self._writing, b"!")
        except OSError as error:
            log.info("%s is not watched, only looked at now and then: %s", self._folder, error)


@contextlib.contextmanager
def watching(path: Path | None) -> Iterator[Watch | None]:
    """A watch on a file that is followed; None without one."""
    watch = Watch(path) if path is not None else None
    try:
        yield watch
    finally:
        if watch is not None:
            watch.close()
