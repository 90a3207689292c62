"""The checkpoints of a state: when they are written, what is reported, and how training goes on from them.

===========================  =====================================================================
EDT_CHECKPOINT_DIR           folder of the checkpoints; without it none is written or looked for
EDT_CHECKPOINT_INTERVAL      seconds between two of them at least, default 10
EDT_CHECKPOINT_KEEP          how many are kept, default 3
EDT_CHECKPOINTS_BROUGHT      set where the launcher brings the newest one, and fetches those that are written
===========================  =====================================================================

A script's first state has its checkpoints in that folder itself, the n-th one in ``state-<n>`` in it.
"""

import itertools
import math
import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edt_hvd.data.randomness import random_state
from edt_hvd.errors import CheckpointError, StateError
from edt_hvd.state.checkpoint import directory, storage
from edt_hvd.state.checkpoint.storage import Content
from edt_hvd.state.checkpoint.writer import Cost, Failed, Outcome, Writer, Written, next_at
from edt_hvd.state.snapshot import Snapshots
from edt_hvd.world import world
from edt_messages import messages
from edt_messages.messages import Message
from edt_messages.runs import BROUGHT

INTERVAL = 10.0
KEEP = 3

_serial = itertools.count(1)


@dataclass(frozen=True)
class Settings:
    """Where checkpoints go and how often; see the module."""

    folder: Path
    interval: float = INTERVAL
    keep: int = KEEP

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> "Settings | None":
        """What the environment asks for; None if it asks for nothing.

        Raises:
            ValueError: a variable is invalid.
        """
        if not environ.get("EDT_CHECKPOINT_DIR"):
            return None
        interval = environ.get("EDT_CHECKPOINT_INTERVAL") or str(INTERVAL)
        keep = environ.get("EDT_CHECKPOINT_KEEP") or str(KEEP)
        if not _is_duration(interval):
            raise ValueError(f"EDT_CHECKPOINT_INTERVAL={interval}: expected seconds, 0 or more")
        if not keep.isdecimal() or int(keep) < 1:
            raise ValueError(f"EDT_CHECKPOINT_KEEP={keep}: expected a whole number, 1 or more")
        return cls(Path(environ["EDT_CHECKPOINT_DIR"]), float(interval), int(keep))


def _is_duration(text: str) -> bool:
    try:
        return 0 <= float(text) < math.inf
    except ValueError:
        return False


class Checkpoints:
    """The checkpoints of one state. Used by the coordinator alone.

    Args:
        settings: where they go and how often.
        now: when training began; seconds of a monotonic clock.
        takes_processor: whether the training computes on this machine's processors.
        emit: sends a message to the launcher; called in another thread, too.
        bring: has the newest checkpoint brought into a folder of this host.
    """

    def __init__(
        self,
        settings: Settings,
        now: float,
        takes_processor: bool,
        emit: Callable[[Message], None],
        bring: Callable[[str], None] = lambda folder: None,
    ) -> None:
        self._folder = settings.folder
        self._interval = settings.interval
        self._emit = emit
        self._bring = bring
        self._writer = Writer(settings.folder, settings.keep, takes_processor, self._report)
        self._begun_at = now
        self._cost: Cost | None = None
        self._in_use: Snapshots | None = None
        self._failures: set[str] = set()
        """Reasons that have been reported since the last checkpoint that was written."""
        self._is_untidy = False
        self._commits: int | None = None
        """The commit whose state is on disk."""

    def restore(self, load: Callable[[Content], None]) -> None:
        """Call `load` with the newest checkpoint that is whole, if there is one.

        Damaged ones are quarantined.

        Raises:
            StateError: the newest whole one cannot be read, or does not fit: `load` raises it.
        """
        self._writer.wait()
        self.collect()
        self._bring(str(self._folder))
        paths = self._found()
        for path in paths:
            try:
                content = storage.read(path)
            except CheckpointError as error:
                self._skip(path, error)
                continue
            except (OSError, StateError) as error:
                raise StateError(
                    f"checkpoint {path} cannot be read: {error}. Mend that, or run the versions that wrote "
                    "it; to go on from the one before it, move it out of its folder"
                ) from error
            try:
                load(content)
            except StateError as error:
                raise StateError(
                    f"checkpoint {path} does not fit: {error}. To go on from it, run the script that wrote "
                    "it; to begin anew, name another folder (--output-dir or EDT_CHECKPOINT_DIR) or remove "
                    "this one"
                ) from error
            self._commits = content.commits
            self._emit(messages.Restored(str(path), content.about["steps"]))
            return
        if paths:
            warnings.warn(
                f"none of the {len(paths)} checkpoints in {self._folder} can be read: training begins anew",
                stacklevel=2,
            )

    def collect(self) -> None:
        """Release the copy of a write that has ended, if one has, and note its outcome."""
        if self._in_use is None or self._writer.busy:
            return
        self._in_use.release()
        self._in_use = None
        outcome = self._writer.take_outcome()
        if outcome is None:
            return
        self._cost = outcome.cost
        match outcome:
            case Written():
                self._failures.clear()
                self._commits = outcome.content.commits
                if outcome.left is not None and not self._is_untidy:
                    warnings.warn(f"old checkpoints cannot be removed: {outcome.left}", stacklevel=2)
                self._is_untidy = outcome.left is not None
            case Failed(reason) if reason not in self._failures:
                self._failures.add(reason)
                warnings.warn(f"no checkpoint written: {reason}; training goes on", stacklevel=2)

    def offer(self, now: float, snapshots: Snapshots, about: Mapping[str, Any]) -> None:
        """A full copy of the state has just been taken: write it, if it is time.

        Args:
            now: seconds of a monotonic clock.
            snapshots: holds the copy, which is acquired until it is written.
            about: for the manifest; values are JSON's. `steps` are the optimizer steps done.
        """
        if self._in_use is None and now >= next_at(self._begun_at, self._interval, self._cost):
            self._begin(now, snapshots, about)

    def finish(self, commits: int, copy: Callable[[], Snapshots], about: Mapping[str, Any]) -> None:
        """See to it that the state after so many commits is on disk.

        Args:
            commits: that have been made.
            copy: takes a full copy of the state.
            about: for the manifest, as with `offer`.
        """
        self._writer.wait()
        self.collect()
        if self._commits != commits:
            self._begin(time.monotonic(), copy(), about)
            self._writer.wait()
            self.collect()

    def _begin(self, now: float, snapshots: Snapshots, about: Mapping[str, Any]) -> None:
        self._begun_at = now
        self._in_use, acquired = snapshots, snapshots.acquire()
        self._writer.begin(
            Content(acquired.commits, acquired.tree, random_state.capture(), {**about, "time": time.time()})
        )

    def _skip(self, path: Path, error: CheckpointError) -> None:
        try:
            outcome = f"it is now {directory.quarantine(path).name}"
        except OSError as refusal:
            outcome = f"it stays where it is: {refusal.strerror}"
        warnings.warn(f"checkpoint {path} is skipped: {error}; {outcome}", stacklevel=3)
        self._emit(messages.CheckpointSkipped(str(path), str(error)))

    def _found(self) -> list[Path]:
        try:
            return directory.newest_first(self._folder)
        except OSError as error:
            raise StateError(
                f"checkpoints cannot be looked for in {self._folder}: {error.strerror}; mend that, or name "
                "another folder (--output-dir or EDT_CHECKPOINT_DIR)"
            ) from error

    def _report(self, outcome: Outcome) -> None:
        """Notify the launcher; in the writer's thread, so that it knows even if this process ends now."""
        match outcome:
            case Written(path, content, size, cost):
                steps, last = content.about["steps"], content.about.get("last", False)
                again = bool(self._failures)
                self._emit(messages.Checkpointed(steps, str(path), size, cost.seconds, last, again))
            case Failed(reason) if reason not in self._failures:
                self._emit(messages.CheckpointFailed(reason))


def for_next_state(environ: Mapping[str, str] = os.environ) -> Checkpoints | None:
    """The checkpoints of the next state of this script; None if none are wanted.

    Raises:
        ValueError: an environment variable is invalid.
    """
    number = next(_serial)
    settings = Settings.from_environment(environ)
    if settings is None:
        return None
    if number > 1:
        settings = Settings(settings.folder / f"state-{number}", settings.interval, settings.keep)
    takes_processor = world.device().type == "cpu"
    bring = world.current().bring_checkpoint if BROUGHT in environ else lambda folder: None
    return Checkpoints(settings, time.monotonic(), takes_processor, _send_to_launcher, bring)


def _send_to_launcher(message: Message) -> None:
    launcher = world.current().launcher
    if launcher is not None:
        launcher.send(message)
