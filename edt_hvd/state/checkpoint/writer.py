"""Writing checkpoints in the background, as often as what they cost allows."""

import atexit
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from edt_hvd.errors import StateError
from edt_hvd.state.checkpoint import directory, storage
from edt_hvd.state.checkpoint.storage import Cancelled, Content

WRITE_SHARE = 0.05
"""The part of the time in which a checkpoint may be under way."""

PROCESSOR_SHARE = 0.005
"""The part of the time for which writing may take a processor from the training."""

CANCEL_TIMEOUT = 0.3
"""Seconds that a cancelled writer has to stop before its process goes on ending."""


@dataclass(frozen=True)
class Cost:
    """What writing a checkpoint has cost.

    Attributes:
        seconds: that it took.
        processor: seconds of processor time that the training might have used.
    """

    seconds: float
    processor: float


def next_at(begun_at: float, interval: float, cost: Cost | None) -> float:
    """When the next checkpoint may begin, at the earliest.

    Args:
        begun_at: when the last one began, or training did; seconds of a monotonic clock.
        interval: seconds between two checkpoints that are wanted at least.
        cost: of the last one; None if there was none.
    """
    if cost is None:
        return begun_at + interval
    return begun_at + max(interval, cost.seconds / WRITE_SHARE, cost.processor / PROCESSOR_SHARE)


@dataclass(frozen=True)
class Written:
    """A checkpoint has been written.

    Attributes:
        path: where it is.
        content: what is in it.
        bytes: its size.
        cost: what writing it took.
        left: why something that is no longer needed is still in the folder; None if nothing is.
    """

    path: Path
    content: Content
    bytes: int
    cost: Cost
    left: str | None = None


@dataclass(frozen=True)
class Failed:
    """A checkpoint could not be written, because of `reason`; see `Written` for the rest."""

    reason: str
    cost: Cost


Outcome = Written | Failed


class Writer:
    """Writes one checkpoint at a time, in a thread that nobody waits for when the process ends.

    Args:
        folder: of all checkpoints.
        keep: how many to keep.
        takes_processor: whether the training computes on this machine's processors.
        notify: called in the thread when a write has ended.
    """

    def __init__(
        self, folder: Path, keep: int, takes_processor: bool, notify: Callable[[Outcome], None]
    ) -> None:
        self._folder = folder
        self._keep = keep
        self._takes_processor = takes_processor
        self._notify = notify
        self._thread: threading.Thread | None = None
        self._outcome: Outcome | None = None
        self._cancelled = threading.Event()
        # A thread that comes back from C++ while the interpreter ends would abort the process.
        atexit.register(self.cancel)

    @property
    def busy(self) -> bool:
        """Whether a checkpoint is being written."""
        return self._thread is not None and self._thread.is_alive()

    def begin(self, content: Content) -> None:
        """Write it, unless the writer was cancelled. The writer must not be busy."""
        assert not self.busy
        self._outcome = None
        self._thread = threading.Thread(
            target=self._write, args=[content], name="edt-checkpoint", daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Wait until the write under way, if any, has ended."""
        if self._thread is not None:
            self._thread.join()

    def cancel(self) -> None:
        """Stop writing, for good; what is left of it is the next writer's to remove."""
        self._cancelled.set()
        if self._thread is not None:
            self._thread.join(CANCEL_TIMEOUT)

    def take_outcome(self) -> Outcome | None:
        """How the last write ended, once; None while it is under way or if it was cancelled."""
        if self.busy:
            return None
        outcome, self._outcome = self._outcome, None
        return outcome

    def _tidy(self, written: Path) -> str | None:
        """Clean the folder up; why that could not be done."""
        try:
            directory.tidy(written, self._keep, time.time())
        except OSError as error:
            return self._reason(error)
        return None

    def _reason(self, error: OSError) -> str:
        return f"{self._folder}: {error.strerror or error}"

    def _write(self, content: Content) -> None:
        started, used = time.monotonic(), time.thread_time()

        def cost() -> Cost:
            processor = time.thread_time() - used if self._takes_processor else 0.0
            return Cost(time.monotonic() - started, processor)

        try:
            path, size = storage.write(self._folder, content, self._cancelled)
            left = self._tidy(path)
            self._outcome = Written(path, content, size, cost(), left)
        except Cancelled:
            return
        except OSError as error:
            self._outcome = Failed(self._reason(error), cost())
        except StateError as error:
            self._outcome = Failed(str(error), cost())
        except Exception as error:  # noqa: BLE001 - nobody sees what ends a thread: training would go on unsaved
            self._outcome = Failed(f"{type(error).__name__}: {error}", cost())
        self._notify(self._outcome)
