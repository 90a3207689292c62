"""Passing on what workers print, as fast as the launcher deals with it."""

import os
import selectors
from collections.abc import Callable

from edt_launch.agent.lifecycle import OutputEnded
from edt_launch.agent.protocol import WINDOW, Output
from edt_launch.agent.warm.server import CHUNK


class Printing:
    """Reads what workers print and sends it; `ended` is told when nothing more comes from one."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        send: Callable[[Output], None],
        ended: Callable[[OutputEnded], None],
    ) -> None:
        self._selector = selector
        self._send = send
        self._ended = ended
        self._pipes: dict[int, tuple[int, str]] = {}
        """Whose each pipe is, and which of its streams."""
        self._untaken = 0
        """Bytes that the launcher has not dealt with yet."""

    def begin(self, worker: int, pipes: dict[str, int]) -> None:
        """Read these pipes of a worker from now on; they are closed at its end."""
        self._pipes |= {pipe: (worker, stream) for stream, pipe in pipes.items()}
        self._watch()

    def note(self, worker: int, text: str) -> None:
        """Put a line of ours among what a worker prints to standard error."""
        data = f"edt-launch: {text}\n".encode(errors="surrogateescape")
        self._untaken += len(data)
        self._send(Output(worker, "stderr", data))

    def taken(self, size: int) -> None:
        """The launcher has dealt with so many bytes."""
        self._untaken -= size
        self._watch()

    def end(self, worker: int) -> None:
        """Send what there is of a worker, and read no more: somebody else may have its pipes open."""
        for pipe in [pipe for pipe, (whose, _) in self._pipes.items() if whose == worker]:
            self._read(pipe)
            self._close(pipe)

    def _watch(self) -> None:
        """Wait for output as long as the launcher keeps up with it."""
        has_room = self._untaken < WINDOW
        for pipe in self._pipes:
            is_read = pipe in self._selector.get_map()
            if has_room and not is_read:
                self._selector.register(pipe, selectors.EVENT_READ, lambda pipe=pipe: self._pass_on(pipe))
            elif is_read and not has_room:
                self._selector.unregister(pipe)

    def _pass_on(self, pipe: int) -> None:
        if pipe not in self._pipes or pipe not in self._selector.get_map():  # closed or full in the same turn
            return
        worker, _ = self._pipes[pipe]
        if self._read(pipe):
            if self._untaken >= WINDOW:
                self._watch()
            return
        self._close(pipe)
        if all(whose != worker for whose, _ in self._pipes.values()):
            self._ended(OutputEnded(worker))

    def _read(self, pipe: int) -> bool:
        try:
            data = os.read(pipe, CHUNK)
        except BlockingIOError:
            return True
        if data:
            self._untaken += len(data)
            self._send(Output(*self._pipes[pipe], data))
        return bool(data)

    def _close(self, pipe: int) -> None:
        del self._pipes[pipe]
        if pipe in self._selector.get_map():
            self._selector.unregister(pipe)
        os.close(pipe)
