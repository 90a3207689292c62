"""The coordinator's reports: values, progress, and how long resizes took."""

import json
import operator
from typing import Any

import horovod.torch as hvd

from edt_hvd.progress import progress_display
from edt_hvd.progress.progress_display import Display
from edt_hvd.world import world
from edt_hvd.world.control import EventSink
from edt_messages.messages import Progress, Resumed
from edt_messages.records import INTEGERS, VALUES_BYTES, Value

REPORT_INTERVAL = 0.2
"""Seconds between two progress messages."""

MAX_STEPS = 2**53
"""A `total_steps` that is too large."""

_values: dict[str, Value] = {}
_sent_at = float("-inf")
_display: Display | None = None


def report(**values: Any) -> None:
    """Show values in the launcher's live view and record them in its event log.

    Under python, mpirun and a static horovodrun there is no such view. The values then appear beside a
    progress bar on a terminal, otherwise in a line every half minute. Only the coordinator's values are used.
    `total_steps`, the number of optimizer steps of the whole run, adds an ETA. A value stays until another
    one of its name is reported. The display is updated by `TorchState.commit`.

    Args:
        **values: numbers (also inf and nan), strings, booleans, or tensors with one element.

    Raises:
        TypeError: a value of another type, or a tensor with several elements.
        ValueError: an integer of more than 64 bits, an invalid `total_steps`, or more than 32 KiB of values
            and names in total. Nothing is reported then.
    """
    found = {name: _plain(name, value) for name, value in values.items()}
    if "total_steps" in found:
        _check_total_steps(found["total_steps"])
    size = len(json.dumps(_values | found))
    if size > VALUES_BYTES:
        raise ValueError(
            f"report({', '.join(f'{name}=...' for name in found):.200}): all values reported so far take "
            f"{size} bytes as JSON, {VALUES_BYTES} are allowed; report shorter strings, and the same names "
            "every time"
        )
    _values.update(found)


def _check_total_steps(value: Value) -> None:
    if isinstance(value, bool | str):
        raise TypeError(
            f"report(total_steps={value!r:.80}): a {type(value).__name__} is no number of steps; give an int"
        )
    if not 0 <= value < MAX_STEPS:
        raise ValueError(
            f"report(total_steps={value!r}): give a number of steps from 0 to 2**53, or none if it is unknown"
        )


def _plain(name: str, value: Any) -> Value:
    if hasattr(value, "item"):
        try:
            value = value.item()
        except (RuntimeError, ValueError):  # torch's and numpy's ways to say that there are several
            raise TypeError(
                f"report({name}=...): a {type(value).__name__} with several elements; give their mean, say"
            ) from None
    if not isinstance(value, float | int | str | bool):
        raise TypeError(
            f"report({name}=...): cannot report a {type(value).__name__}; "
            "give a number, a string or a boolean"
        )
    if isinstance(value, str):
        value.encode()  # raises UnicodeEncodeError, a ValueError, for surrogates
    if isinstance(value, int) and value not in INTEGERS:
        raise ValueError(
            f"report({name}=...): an integer of {value.bit_length()} bits; give one of 64 at most, a float "
            "or a string"
        )
    plain: Value = value
    return plain


def send_progress(step: int, epoch: Any, now: float, at_once: bool = False) -> None:
    """Report how far training is, once per `REPORT_INTERVAL` at most unless `at_once`."""
    global _sent_at, _display
    if hvd.rank() != 0 or not (at_once or now - _sent_at >= REPORT_INTERVAL):
        return
    _sent_at = now
    progress = Progress(step, _whole_number(epoch), hvd.size(), dict(_values))
    launcher = world.current().launcher
    if launcher is not None:
        launcher.send(progress)
    elif _values:
        _display = _display or progress_display.for_this_process()
        _display.show(progress, now)


def _whole_number(value: Any) -> int | None:
    """An integer of Python, NumPy or torch as one of Python's; None for anything else."""
    try:
        return operator.index(value)
    except TypeError:
        return None


def end_progress() -> None:
    """Training has ended; a bar is left as it is."""
    global _display
    if _display is not None:
        _display.end()
    _display = None


class ResizeReport:
    """Times of one re-formation of the world, in seconds since training stopped."""

    def __init__(self, generation: int, previous_size: int | None, size: int, stopped_at: float) -> None:
        self.generation = generation
        self.previous_size = previous_size
        self.size = size
        self.phases: dict[str, float] = {}
        self._stopped_at = stopped_at
        self._last_mark = stopped_at
        self._sent = False

    @classmethod
    def first(cls, generation: int, size: int) -> "ResizeReport":
        """The report of a worker's first world, which interrupted nothing."""
        report = cls(generation, None, size, 0.0)
        report._sent = True
        return report

    @property
    def last_trained_size(self) -> int:
        """Workers of the last world that has trained: this one, or the one before."""
        return self.size if self._sent or self.previous_size is None else self.previous_size

    def mark(self, phase: str, now: float) -> None:
        """Note that `phase` ended now."""
        self.phases[phase] = now - self._last_mark
        self._last_mark = now

    def send_to(self, launcher: EventSink | None, now: float) -> None:
        """Send the report, once, from the coordinator. The pause ends now."""
        if self._sent or launcher is None:
            return
        self._sent = True
        if hvd.rank() == 0:
            pause = now - self._stopped_at
            launcher.send(Resumed(self.generation, self.previous_size, self.size, pause, self.phases))
