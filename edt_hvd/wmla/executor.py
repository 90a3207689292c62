"""The program of an executor, ``python -m edt_hvd.wmla.executor PAYLOAD``; edt-launch runs it as workers."""

import sys
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import edt_hvd
from edt_hvd.wmla.channel import Sender
from edt_hvd.wmla.handing import payload
from edt_hvd.wmla.handing.payload import Payload
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.results import Begun, Message, Order, Result
from edt_hvd.wmla.training.engine import Engine

OUTSTANDING = 256
"""Results that the coordinator may be ahead of the driver; then it waits."""

OUTSTANDING_BATCHES = 1024
"""Mini-batches in them."""

APART = 4
"""Results that executors may be apart: one in a step, three at the end of an epoch."""


class ToDriver:
    """Sends results to the driver while this executor is the coordinator.

    Every executor keeps the last results, as many as the coordinator may be ahead of the driver, and tells
    them again when it takes over: the driver drops what it has. An executor that joins has none, so a
    coordinator begins only when the driver has everything from before.
    """

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._plan: Begun | None = None
        self._order = Order()
        self._recent: deque[Result] = deque()
        self._leads = False

    def tell(self, message: Message) -> None:
        """As in `engine.Outlet`."""
        if isinstance(message, Begun):
            self._plan = message
        elif self._order.admits(message):
            self._recent.append(message)
            if len(self._recent) > self._limit + APART:
                self._recent.popleft()
        led, self._leads = self._leads, edt_hvd.is_coordinator()
        if self._leads:
            begins = self._recent and (not led or isinstance(message, Begun))
            for each in [message] if led else self._known():
                self._sender.send(each)
            self._sender.wait(0 if begins else self._limit)
        elif led:
            self._sender.finish()

    def _known(self) -> list[Message]:
        return [*([] if self._plan is None else [self._plan]), *self._recent]

    @property
    def _limit(self) -> int:
        per_step = self._plan.batches_per_step if self._plan is not None else 1
        return max(1, min(OUTSTANDING, OUTSTANDING_BATCHES // per_step))


def program_of(given: Payload) -> Program:
    """The program, whose `datasets_function` finds the random numbers that it would find in the driver."""
    function = given.program.datasets_function

    def datasets() -> Any:
        given.generators.restore()
        return function()

    return replace(given.program, datasets_function=datasets)


def main() -> None:
    """Take part in the training of the payload that the command line names."""
    if len(sys.argv) != 2:
        sys.exit("usage: python -m edt_hvd.wmla.executor PAYLOAD")
    given = payload.read(Path(sys.argv[1]))
    sender = Sender(given.results)
    try:
        Engine(
            program_of(given), given.schedule, ToDriver(sender), lambda line: print(line, flush=True)
        ).run()
    finally:
        sender.close()


if __name__ == "__main__":
    main()
