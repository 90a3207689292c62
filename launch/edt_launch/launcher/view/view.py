"""What a user sees of a job: a live view in a terminal, plain lines elsewhere."""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Protocol, TextIO

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from edt_launch.core.history.event_wording import workers
from edt_launch.core.history.job_history import JobHistory
from edt_launch.core.text.durations import duration
from edt_launch.launcher.view.output import Line
from edt_launch.launcher.view.pace import rate, remaining
from edt_launch.launcher.view.phases import PHASES

REDRAW_INTERVAL = 0.125
"""Seconds between two pictures of the live view."""

PLAIN_INTERVAL = 30.0
"""Seconds between two lines about the progress in the plain view."""

NAME = "edt-launch"
_HEADINGS = {"rendezvous": "rendez-\nvous", "first_step": "first\nstep"}
MIN_BAR = 10
"""Columns of the progress bar, at least."""


class View(Protocol):
    """Shows a job. None of its methods fails when nobody can see it any more."""

    def line(self, line: Line, label: str) -> None:
        """Show a line of the worker called `label`."""

    def message(self, text: str) -> None:
        """Show a message of the launcher."""

    def refresh(self, now: float, job: JobHistory) -> None:
        """Show how the job stands at unix time `now`; may be called as often as one likes."""

    def close(self, job: JobHistory) -> None:
        """Show the table of resizes, if there were any, and give the terminal back."""


class PlainView:
    """Lines without escape codes: the workers' to the stream they came from, ours to standard error."""

    def __init__(self, out: TextIO, err: TextIO) -> None:
        self._streams = {"stdout": OutputStream(out), "stderr": OutputStream(err)}
        self._told_at: float | None = None
        self._told_step: int | None = None

    def line(self, line: Line, label: str) -> None:
        """Show a line of a worker."""
        self._streams[line.stream].write(f"{_prefix(line, label)}{line.text}\n")

    def message(self, text: str) -> None:
        """Show a message of the launcher."""
        for line in text.splitlines():
            self._streams["stderr"].write(f"{NAME}: {line}\n")

    def refresh(self, now: float, job: JobHistory) -> None:
        """Show how the job stands, if it is time."""
        if job.step is None or job.step == self._told_step:
            return
        self._told_at = now if self._told_at is None else self._told_at
        if now - self._told_at >= PLAIN_INTERVAL:
            self._told_at, self._told_step = now, job.step
            self.message(summary(now, job))

    def close(self, job: JobHistory) -> None:
        """Show the table of resizes."""
        if job.resizes:
            text = io.StringIO()
            console = Console(file=text, width=80, color_system=None, force_terminal=False)
            console.print(resizes_table(job))
            console.print(*standby_lines(job), sep="\n", soft_wrap=True)
            lines = [line.rstrip() for line in text.getvalue().rstrip().splitlines()]
            self._streams["stderr"].write("\n".join([*lines, ""]))


class LiveView:
    """A few lines at the bottom of a terminal, redrawn in place; everything else appears above them.

    `err` is for the workers' errors, if standard error does not lead to the same terminal.
    """

    def __init__(self, console: Console, err: TextIO | None = None) -> None:
        self._console = console
        self._err = OutputStream(err) if err is not None else None
        self._live = Live(
            console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False, transient=False
        )
        self._drawn_at = float("-inf")
        self._is_visible = True

    def line(self, line: Line, label: str) -> None:
        """Show a line of a worker."""
        if self._err is not None and line.stream == "stderr":
            self._err.write(f"{_prefix(line, label)}{line.text}\n")
            return
        style = "yellow" if line.stream == "stderr" else "cyan"
        self._print(Text.assemble((_prefix(line, label), style), Text.from_ansi(line.text)))

    def message(self, text: str) -> None:
        """Show a message of the launcher."""
        for line in text.splitlines():
            self._print(Text.assemble((f"{NAME}: ", "bold"), line))

    def refresh(self, now: float, job: JobHistory) -> None:
        """Show how the job stands, if it is time."""
        if not self._is_visible or now - self._drawn_at < REDRAW_INTERVAL:
            return
        self._drawn_at = now
        with self._drawing():
            self._live.start()
            self._live.update(panel(now, job), refresh=True)

    def close(self, job: JobHistory) -> None:
        """Show the table of resizes."""
        with self._drawing():
            if self._live.is_started:
                last = job.marks[-1].time if job.marks else 0.0
                self._live.update(panel(last, job), refresh=True)
                self._live.stop()
            if job.resizes:
                self._console.print(resizes_table(job))
                for line in standby_lines(job):
                    self._console.print(line, style="dim")

    def _print(self, text: Text) -> None:
        if self._is_visible:
            with self._drawing():
                self._console.print(text, soft_wrap=True)

    @contextmanager
    def _drawing(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            self._is_visible = False


def _prefix(line: Line, label: str) -> str:
    return f"[{label}] " if line.prefix is None else line.prefix


class Terminal(Console):
    """A console that falls silent when its reader goes away; rich's own ends the program."""

    def on_broken_pipe(self) -> None:
        """Show nothing from now on."""
        self.quiet = True


class OutputStream:
    """A text stream that may go away: a closed pipe or terminal ends the output, not the job."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self._is_open = True

    def write(self, text: str) -> None:
        """Write and flush, if there is still somebody to read it."""
        if not self._is_open:
            return
        encoding = self.stream.encoding or "utf-8"
        try:
            self.stream.write(text.encode(encoding, "replace").decode(encoding))
            self.stream.flush()
        except (OSError, ValueError):
            self._is_open = False


def make_view(kind: str, out: TextIO, err: TextIO) -> View:
    """The view for standard output and error: "live", "plain", or "auto".

    The last means live where `out` is a terminal that can redraw lines.
    """
    console = Terminal(file=out, highlight=False, force_terminal=True if kind == "live" else None)
    if kind == "plain" or (kind == "auto" and (not console.is_terminal or console.is_dumb_terminal)):
        return PlainView(out, err)
    return LiveView(console, None if err.isatty() else err)


def panel(now: float, job: JobHistory) -> RenderableType:
    """The live view: one line about the progress, one about everything else."""
    if job.size is None:
        text = f"starting {workers(job.starting)} ..." if job.starting else "waiting ..."
        return Text(text, style="dim", no_wrap=True, overflow="ellipsis")
    first = Table.grid(padding=(0, 1), expand=True)
    first.add_column(no_wrap=True)
    cells: list[RenderableType] = [Text(workers(job.size), style="bold")]
    if job.total is not None and job.step is not None:
        first.add_column(ratio=1, min_width=MIN_BAR)
        done = job.total if job.exit_code == 0 else min(job.step, job.total)
        cells.append(ProgressBar(total=job.total, completed=done))
    first.add_column(no_wrap=True, justify="right", overflow="ellipsis")
    cells.append(Text(", ".join(_progress(now, job))))
    first.add_row(*cells)
    second = Text(" | ".join(_details(job)), style="dim", no_wrap=True, overflow="ellipsis")
    return Group(first, second)


def summary(now: float, job: JobHistory) -> str:
    """How the job stands, as one line of text."""
    if job.size is not None:
        return ", ".join([workers(job.size), *_progress(now, job)])
    who = f"starting {workers(job.starting)}" if job.starting else "waiting for workers"
    return who if job.step is None else f"{who} again, at step {job.step}"


def resizes_table(job: JobHistory) -> Table:
    """The resizes of a job, with the pause and the phases of each in seconds; 80 columns are enough."""
    table = Table(title="Resizes, times in seconds", title_justify="left", title_style="bold")
    table.box, table.padding, table.show_edge, table.pad_edge = box.SIMPLE_HEAD, (0, 0), False, False
    for heading in ("step", "from", "to", "pause", *(_HEADINGS.get(phase, phase) for phase in PHASES)):
        table.add_column(heading, justify="right", vertical="bottom", no_wrap=True)
    table.add_column(" reason", vertical="bottom", min_width=12)
    for resize in job.resizes:
        step = "" if resize.step is None else str(resize.step)
        pause = "-" if resize.pause is None else f"{resize.pause:.2f}"
        phases = (f"{resize.phases[name]:.2f}" if name in resize.phases else "" for name in PHASES)
        table.add_row(step, str(resize.before), str(resize.after), pause, *phases, Text(f" {resize.reason}"))
    return table


def standby_lines(job: JobHistory) -> list[str]:
    """What it cost that newcomers were ready, one or two lines; none if there were no newcomers."""
    count = len(job.standbys)
    if not count:
        return []
    waited = fmean(standby.waited for standby in job.standbys)
    processor = fmean(standby.processor for standby in job.standbys)
    own = _memory([standby.private for standby in job.standbys])
    who = "1 newcomer" if count == 1 else f"{count} newcomers, on average"
    first = f"standby: {who} {waited:.2g} s at the rendezvous, {processor:.2g} s of processor time{own}"
    servers = (
        f"warm server on {host}: imported for {server.seconds:.1f} s{_memory([server.private])}"
        for host, server in job.warm_servers.items()
    )
    return [first, *servers]


def _memory(sizes: Sequence[int | None]) -> str:
    known = [size for size in sizes if size is not None]
    return f", {fmean(known) / 1e6:.0f} MB of own memory" if known else ""


def _progress(now: float, job: JobHistory) -> list[str]:
    parts: list[str] = []
    if job.step is not None:
        parts.append(f"step {job.step}" + (f"/{job.total}" if job.total is not None else ""))
    if pace := rate(job.marks):
        parts.append(f"{pace:.3g} steps/s")
        batch = job.values.get("effective_batch_size")
        if isinstance(batch, int | float):
            parts.append(f"{pace * batch:.3g} samples/s")
    left = remaining(now, job.marks, job.total)
    if job.exit_code is not None:
        interrupted = job.reason.startswith("SIG")
        parts.append("finished" if job.exit_code == 0 else "ended" if interrupted else "failed")
    elif left is not None:
        parts.append(f"ETA {duration(left)}")
    return parts


def _details(job: JobHistory) -> list[str]:
    parts = [f"generation {job.generation}"]
    if job.resizes:
        last = job.resizes[-1]
        pause = "under way" if last.pause is None else f"paused {last.pause:.2f} s"
        parts.append(f"last resize {last.before} -> {last.after}, {pause}")
    elif job.epoch is not None:
        parts.append(f"epoch {job.epoch}")
    if job.checkpoint is not None:
        parts.append(f"checkpoint at step {job.checkpoint}")
    if job.starting:
        parts.append(f"{job.starting} starting")
    hidden = ("total_steps", "effective_batch_size")
    parts += [f"{name} {_value(value)}" for name, value in job.values.items() if name not in hidden]
    return parts


def _value(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
