"""How far training is, where no launcher shows it: a bar on a terminal, elsewhere a line now and then."""

import atexit
import os
import sys
from typing import Any, Protocol, TextIO

from edt_hvd.world.fixed_world import MPI_VARIABLES
from edt_messages.messages import Progress
from edt_messages.records import Value

LINE_INTERVAL = 30.0
"""Seconds between two lines."""

TOTAL = "total_steps"
"""The reported value that is the number of steps of the whole run."""


class Display(Protocol):
    """Shows progress to whoever started this process."""

    def show(self, progress: Progress, now: float) -> None:
        """Show it; `now` in seconds of any clock that only goes forwards."""

    def end(self) -> None:
        """Nothing more comes."""


class Lines:
    """Prints the first progress, one after every `LINE_INTERVAL`, and the last."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._printed_at = float("-inf")
        self._unprinted: Progress | None = None

    def show(self, progress: Progress, now: float) -> None:
        """Print a line if it is time for one."""
        self._unprinted = progress
        if now - self._printed_at >= LINE_INTERVAL:
            self._printed_at = now
            self.end()

    def end(self) -> None:
        """Print the last progress, if it has not been."""
        if self._unprinted is not None:
            self._stream.write(line_of(self._unprinted) + "\n")
            self._stream.flush()
            self._unprinted = None


class Bar:
    """A bar that stays below what the script prints."""

    def __init__(self, stream: TextIO) -> None:
        from rich import progress as rich_progress
        from rich.console import Console

        self._bar = rich_progress.Progress(
            rich_progress.MofNCompleteColumn(),
            rich_progress.BarColumn(bar_width=None),
            rich_progress.TimeRemainingColumn(),
            rich_progress.TextColumn("{task.fields[values]}", markup=False),
            console=Console(file=stream),
            auto_refresh=False,
            expand=True,
        )
        self._task = self._bar.add_task("", total=None, values="")
        self._bar.start()
        atexit.register(self.end)  # it hides the cursor

    def show(self, progress: Progress, now: float) -> None:
        """Draw it."""
        total: Any = progress.values.get(TOTAL)
        values = ", ".join(_details(progress))
        self._bar.update(self._task, completed=progress.step, total=total, values=values, refresh=True)

    def end(self) -> None:
        """Leave the bar as it is."""
        self._bar.stop()
        atexit.unregister(self.end)


def for_this_process() -> Display:
    """A bar on standard error or standard output, if one of them is a terminal; else lines on the former."""
    for stream, descriptor in ((sys.stderr, 2), (sys.stdout, 1)):
        if stream.isatty() and _reaches_terminal(descriptor):
            return Bar(stream)
    return Lines(sys.stderr)


def line_of(progress: Progress) -> str:
    """Progress in one line."""
    total = progress.values.get(TOTAL)
    steps = f"step {progress.step}" if total is None else f"step {progress.step} of {total}"
    return ", ".join([steps, *_details(progress)])


def _details(progress: Progress) -> list[str]:
    epoch = [] if progress.epoch is None else [f"epoch {progress.epoch}"]
    values = [f"{name} {_shown(value)}" for name, value in progress.values.items() if name != TOTAL]
    return [*epoch, *values, "1 worker" if progress.size == 1 else f"{progress.size} workers"]


def _shown(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _reaches_terminal(descriptor: int) -> bool:
    """Whether a terminal here is the user's: mpirun gives its processes one in any case."""
    if not any(name in os.environ for name in MPI_VARIABLES):
        return True
    try:
        return os.readlink(f"/proc/{os.getppid()}/fd/{descriptor}").startswith(("/dev/pts/", "/dev/tty"))
    except OSError:  # not to be seen
        return False
