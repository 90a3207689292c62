"""One run of horovodrun, from its start to its last process: what it says, and how it is ended."""

import os
import selectors
import subprocess
import time
import uuid
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from edt_launch.agent import processes
from edt_launch.errors import StartError
from edt_launch.launcher import events
from edt_launch.launcher.child import JOB_VARIABLE
from edt_launch.launcher.ending import PAUSE_SIGNAL
from edt_launch.view.output import Demultiplexer, Line
from edt_launch.watching import Watch

TICK = 0.05
"""Seconds between two looks at everything else."""

CHUNK = 2**16
"""Bytes read at once."""

LEFTOVER_GRACE = 2.0
"""Seconds that processes have to follow horovodrun into its end before they are killed."""


@dataclass(frozen=True)
class Told:
    """Horovodrun has reported an event."""

    event: events.Event


@dataclass(frozen=True)
class Tick:
    """Time has passed."""


@dataclass(frozen=True)
class LeftBehind:
    """Horovodrun has gone, and so many processes that it had left behind were killed."""

    count: int


Happening = Told | Line | Tick | LeftBehind
_Consumer = Callable[[bytes], Iterator[Happening]]


class Supervised:
    """A horovodrun that is watched. Leaving its context leaves no process of it on this machine.

    Args:
        words: its command line.
        variables: its environment, but for the descriptor of its events and the mark of its processes.
        directory: where it starts; None for the present one.
        known: serial numbers of the workers there have been.
        watch: when it wakes, a `Tick` comes at once.

    Raises:
        StartError: it cannot be executed.
    """

    def __init__(
        self,
        words: Sequence[str],
        variables: Mapping[str, str],
        directory: Path | None = None,
        known: Container[int] = (),
        watch: Watch | None = None,
    ) -> None:
        self._watch = watch
        self._name = uuid.uuid4().hex
        self._known = known
        self._seen: set[psutil.Process] = set()
        self._events_pipe, writing = os.pipe()
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,  # its end tells horovodrun that we are gone
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**variables, "EDT_EVENTS_FD": str(writing), JOB_VARIABLE: self._name},
                pass_fds=[writing],
                cwd=directory,
                start_new_session=True,
                bufsize=0,
            )
        except OSError as error:
            os.close(self._events_pipe)
            raise StartError(f"cannot run {words[0]}: {error.strerror}") from None
        finally:
            os.close(writing)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._process.poll() is None:
                self.kill()
        finally:
            os.close(self._events_pipe)
            self._process.__exit__(kind, error, trace)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    @property
    def exit_code(self) -> int:
        """Its exit code, negative for a signal. Known after the last of `happenings`."""
        code = self._process.poll()
        assert code is not None
        return code

    def terminate(self) -> None:
        """Tell it to end the job."""
        self._seen |= processes.tree(self.pid)
        self._process.terminate()

    def pause(self) -> None:
        """Tell it to have the state saved and all workers leave."""
        self._process.send_signal(PAUSE_SIGNAL)

    def kill(self) -> int:
        """Kill all of its processes; returns how many."""
        return processes.kill_job(self.pid, self._name, self._seen)

    def happenings(self) -> Iterator[Happening]:
        """Everything that happens until it and its processes have ended, a `Tick` now and then."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with selectors.DefaultSelector() as selector:
            for pipe, consume in (
                (self._events_pipe, _events_consumer()),
                (self._process.stdout.fileno(), self._output_consumer("stdout")),
                (self._process.stderr.fileno(), self._output_consumer("stderr")),
            ):
                os.set_blocking(pipe, False)
                selector.register(pipe, selectors.EVENT_READ, consume)
            if self._watch is not None:
                selector.register(self._watch, selectors.EVENT_READ, lambda data: iter(()))
            while self._process.poll() is None:
                yield from self._read(selector, TICK)
                yield Tick()
            yield from self._sweep()
            while found := list(self._read(selector, 0)):
                yield from found
            for key in list(selector.get_map().values()):
                yield from key.data(b"")

    def _read(self, selector: selectors.BaseSelector, timeout: float) -> Iterator[Happening]:
        """What the pipes have."""
        if not selector.get_map():
            time.sleep(timeout)
            return
        ready = [key for key, _ in selector.select(timeout)]
        # Events first: they say whose the lines are.
        for key in sorted(ready, key=lambda key: key.fd != self._events_pipe):
            try:
                data = os.read(key.fd, CHUNK)
            except BlockingIOError:
                continue
            if not data:
                selector.unregister(key.fd)
            yield from key.data(data)

    def _output_consumer(self, stream: str) -> _Consumer:
        demultiplexer = Demultiplexer(stream, self._known)
        return lambda data: demultiplexer.feed(time.monotonic(), data) if data else demultiplexer.close()

    def _sweep(self) -> Iterator[LeftBehind]:
        """Horovodrun has gone: so will what is left of it."""
        count = processes.sweep(self._name, self._seen, LEFTOVER_GRACE)
        if count:
            yield LeftBehind(count)


def _events_consumer() -> _Consumer:
    stream = events.EventStream()

    def consume(data: bytes) -> Iterator[Happening]:
        for event in stream.feed(data):
            if isinstance(event, str):
                yield Line(None, "stderr", f"not an event: {event}")
            else:
                yield Told(event)

    return consume
