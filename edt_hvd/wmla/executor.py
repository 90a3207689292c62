"""The program of an executor, ``python -m edt_hvd.wmla.executor PAYLOAD``; edt-launch runs it as workers."""

import sys
from collections import deque
from pathlib import Path

import edt_hvd
from edt_hvd.wmla import payload
from edt_hvd.wmla.channel import Sender
from edt_hvd.wmla.engine import Engine
from edt_hvd.wmla.results import Begun, Message, Result, StepDone

KEPT = 4096
"""Results that are told again by an executor that takes over from a lost one, as long as memory allows."""

KEPT_BATCHES = 65536
"""Mini-batches in them, at most; the last result is kept whatever it has."""


class ToDriver:
    """Sends results to the driver while this executor is the coordinator."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._plan: Begun | None = None
        self._recent: deque[Result] = deque()
        self._batches = 0
        self._leads = False

    def tell(self, message: Message) -> None:
        """As in `engine.Outlet`."""
        if isinstance(message, Begun):
            self._plan = message
        else:
            self._keep(message)
        led, self._leads = self._leads, edt_hvd.is_coordinator()
        if not self._leads:
            if led:
                self._sender.finish()
            return
        if led:
            self._sender.send(message)
        else:
            if self._plan is not None:
                self._sender.send(self._plan)
            for result in self._recent:
                self._sender.send(result)

    def _keep(self, result: Result) -> None:
        self._recent.append(result)
        self._batches += _batches_of(result)
        while len(self._recent) > KEPT or (len(self._recent) > 1 and self._batches > KEPT_BATCHES):
            self._batches -= _batches_of(self._recent.popleft())


def _batches_of(result: Result) -> int:
    return len(result.batches) if isinstance(result, StepDone) else 0


def main() -> None:
    """Take part in the training of the payload that the command line names."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m edt_hvd.wmla.executor PAYLOAD")
    given = payload.read(Path(sys.argv[1]))
    sender = Sender(given.results)
    try:
        Engine(given.program, given.schedule, ToDriver(sender), lambda line: print(line, flush=True)).run()
    finally:
        sender.close()


if __name__ == "__main__":
    main()
