"""Which failure ended a job: a pure fold over its events."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from edt_launch.core.events import Event, Failed, Progress, World

STOPPED = ("SIGTERM", "SIGINT", "SIGHUP")
"""Signals by which a worker is told to stop; one that died of them was not the first to fail."""

PEER_LOST = ("HorovodInternalError", "Connection closed by peer", "Connection reset by peer")
"""What the last lines of a worker say that failed because another one had gone."""


@dataclass(frozen=True)
class Failures:
    """The failures of a job, in the order in which they were noticed."""

    open: tuple[Failed, ...] = ()
    survived: tuple[Failed, ...] = ()
    """Those after which the job trained on."""
    is_formed_anew: bool = False

    def observe(self, event: Event) -> "Failures":
        """The failures after one more event."""
        match event:
            case Failed():
                return Failures((*self.open, event), self.survived)
            case World():
                return replace(self, is_formed_anew=bool(self.open))
            case Progress() if self.is_formed_anew:
                return Failures((), (*self.survived, *self.open))
        return self

    def first(self, last_lines: Callable[[int], Sequence[str]]) -> Failed | None:
        """The failure that ended the job, given the last lines of each worker.

        Exits are noticed in an order of chance when one failure brings the others about, so those that look
        like a consequence come last.
        """

        def is_consequence(failure: Failed) -> bool:
            text = "\n".join(last_lines(failure.worker))
            return failure.signal in STOPPED or any(sign in text for sign in PEER_LOST)

        candidates = self.open or self.survived[-1:]
        return next((f for f in candidates if not is_consequence(f)), candidates[0] if candidates else None)


def how_it_ended(failure: Failed) -> str:
    """How a worker ended that has failed, in words."""
    if failure.reason:
        return failure.reason
    return f"killed by {failure.signal}" if failure.signal else f"exit code {failure.exit_code}"


_OUR_ERROR = re.compile(r"edt_hvd(?:\.\w+)*\.\w+Error: (.+)")
"""The last line of a traceback of an error of edt_hvd, whose message says what to do."""


def describe(failure: Failed, lines: Sequence[str], log: Path) -> str:
    """The message about the failure that ended a job: the last thing a user sees.

    What an error of edt_hvd says comes last.
    """
    said = [f"  | {line}" for line in lines if not _OUR_ERROR.fullmatch(line)]
    if not lines:
        said = ["  (it has printed nothing)"]
    ours = [error[1] for error in map(_OUR_ERROR.fullmatch, lines) if error is not None]
    head = f"first failure: rank {failure.rank} on {failure.host}, {how_it_ended(failure)}"
    return "\n".join([head, *said, f"log: {log}", *ours[-1:]])
