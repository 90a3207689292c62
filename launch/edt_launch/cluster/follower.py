"""Following an allocation file that something else rewrites: only a good, newer text is taken over."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from edt_launch.cluster.allocation import Allocation, parse, read
from edt_launch.core.errors import AllocationError

CheckHost = Callable[[str], str | None]
"""What is wrong with a host, in words; None if it can be used."""

REREAD_INTERVAL = 1.0
"""Seconds after which the content is compared even if the file looks untouched."""


@dataclass(frozen=True)
class Limits:
    """Workers that a job may have.

    Attributes:
        min_np: at least, 1 or more.
        max_np: at most, `min_np` or more.
    """

    min_np: int
    max_np: int


@dataclass(frozen=True)
class Accepted:
    """The job has this from now on.

    Attributes:
        allocation: what it has.
        changed: when the file said so first, in unix seconds; None if unknown.
    """

    allocation: Allocation
    changed: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Unchanged:
    """The text says what the job has already."""


@dataclass(frozen=True)
class Rejected:
    """The text changes nothing, because of `reason`."""

    reason: str


Verdict = Accepted | Unchanged | Rejected


def accept(previous: Allocation | None, text: str, limits: Limits, check_host: CheckHost) -> Verdict:
    """Judge the text of an allocation file.

    Args:
        previous: what the job has, None before the first.
        text: content of the file.
        limits: bounds on the number of slots.
        check_host: asked for each host.
    """
    try:
        allocation = parse(text)
    except AllocationError as error:
        return Rejected(str(error))
    if allocation == previous:
        return Unchanged()
    if previous is not None and allocation.generation <= previous.generation:
        return Rejected(
            f"generation {allocation.generation} is not newer than {previous.generation}, which is in force: "
            "every change needs a higher one"
        )
    if allocation.slots > limits.max_np:
        return Rejected(f"{allocation.slots} slots are more than --max-np {limits.max_np}")
    if allocation.slots < limits.min_np:
        return Rejected(f"{allocation.slots} slots are fewer than --min-np {limits.min_np}")
    problems = (check_host(host.host) for host in allocation.hosts if host.slots)
    problem = next((problem for problem in problems if problem is not None), None)
    return Accepted(allocation) if problem is None else Rejected(problem)


class AllocationSource:
    """Where a job's allocations come from; asked now and then, it reports each distinct rejection once."""

    def __init__(self) -> None:
        self._told: set[str] = set()
        self.allocation: Allocation | None = None
        """The one in force; None before the first."""
        self.rejection = ""
        """Why what there is changes nothing; empty if it is in force."""

    def poll(self, now: float) -> Accepted | Rejected | None:
        """What has not been told yet, or None.

        Args:
            now: seconds of a monotonic clock.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Nobody asks any more."""

    def _judge(self, verdict: Verdict) -> Accepted | Rejected | None:
        match verdict:
            case Rejected(reason):
                self.rejection = reason
                if reason in self._told:
                    return None
                self._told.add(reason)
                return verdict
            case Accepted():
                self.allocation = verdict.allocation
        self.rejection = ""
        self._told.clear()
        return verdict if isinstance(verdict, Accepted) else None


class Follower(AllocationSource):
    """Looks at a file whenever it is asked."""

    def __init__(self, path: Path, limits: Limits, check_host: CheckHost) -> None:
        super().__init__()
        self._path = path
        self._limits = limits
        self._check_host = check_host
        self._looked: object = None
        self._read_at = float("-inf")
        self._text: str | None = None

    def poll(self, now: float) -> Accepted | Rejected | None:
        """Look at the file; what has not been told yet, or None."""
        look = _metadata(self._path)
        if look == self._looked and now - self._read_at < REREAD_INTERVAL:
            return None
        is_first = self._looked is None
        self._looked, self._read_at = look, now
        try:
            text = _read(self._path)
        except OSError as error:
            return self._judge(Rejected(f"the allocation file {self._path} cannot be read: {error.strerror}"))
        except AllocationError as error:
            return self._judge(Rejected(str(error)))
        if text == self._text and not is_first and not self.rejection:
            return None
        self._text = text
        if text is None:
            reason = (
                f"the allocation file {self._path} is missing: write it, or name another with --allocation"
            )
            return self._judge(Rejected(reason))
        verdict = accept(self.allocation, text, self._limits, self._check_host)
        if isinstance(verdict, Accepted):
            verdict = replace(verdict, changed=_changed(self._path))
        return self._judge(verdict)


def _metadata(path: Path) -> tuple[object, ...]:
    try:
        status = os.stat(path)
    except OSError as error:
        return (type(error),)
    return status.st_mtime_ns, status.st_ino, status.st_size


def _changed(path: Path) -> float | None:
    """When the file was written or put in its place, in unix seconds; None if it has gone."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return max(status.st_mtime, status.st_ctime)


def _read(path: Path) -> str | None:
    try:
        return read(path)
    except FileNotFoundError:
        return None
