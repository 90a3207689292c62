"""How long no step is done while a world is replaced."""

from collections.abc import Iterator

from edt_launch.core.history import events
from edt_messages import messages


class Resumption:
    """Measures it from the reports of rank 0."""

    def __init__(self) -> None:
        self.step = 0
        """The last step that was reported."""
        self._at = 0.0
        self._opened: tuple[int, int, int] | None = None

    def open(self, generation: int, before: int | None, size: int) -> None:
        """Another world is in force."""
        self._opened = None if before is None else (generation, before, size)

    def observe(self, now: float, progress: messages.Progress) -> Iterator[events.Event]:
        """The events that a report of a step means."""
        if self._opened is not None and self.step:
            generation, before, size = self._opened
            yield events.Resumed(generation, before, size, now - self._at)
        self.step, self._at, self._opened = progress.step, now, None
        yield events.Progress(**vars(progress))
