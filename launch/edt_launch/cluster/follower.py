"""Following an allocation file that something else rewrites, or a source of hosts that may change."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from edt_launch.cluster.allocation import Allocation, HostSlots, parse, read
from edt_launch.cluster.hosts import HostSource, cap, unbound, usable
from edt_launch.cluster.usage import Usage, Used
from edt_launch.core.errors import AllocationError, SourceError

CheckHost = Callable[[HostSlots], str | None]
"""What is wrong with a host, in words; None if it can be used."""

QUERY_INTERVAL = 1.0
"""Seconds from the end of a source's answer to the next question, as in Horovod."""

MAX_REJECTIONS = 20
"""Distinct rejections that are reported until an allocation is accepted again."""

CLOSE_TIMEOUT = 2.0
"""Seconds that a source has at the end to give back what it holds."""

REREAD_INTERVAL = 1.0
"""Seconds after which the content is compared even if the file looks untouched."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SizeLimits:
    """Workers that a job may have: `min_np`, which is 1 or more, to `max_np`."""

    min_np: int
    max_np: int


@dataclass(frozen=True)
class Accepted:
    """The job has this from now on; the file said so first at `changed`, unix seconds, None if unknown."""

    allocation: Allocation
    changed: float | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Rejected:
    """The text changes nothing, because of `reason`."""

    reason: str


Verdict = Accepted | Rejected | None
"""None: the job has it already."""


def accept(previous: Allocation | None, text: str, limits: SizeLimits, check_host: CheckHost) -> Verdict:
    """Judge the text of an allocation file; `previous` is what the job has, None before the first."""
    try:
        allocation = parse(text)
    except AllocationError as error:
        return Rejected(str(error))
    if allocation == previous:
        return None
    if previous is not None and allocation.generation <= previous.generation:
        return Rejected(
            f"generation {allocation.generation} is not newer than {previous.generation}, which is in force: "
            "every change needs a higher one"
        )
    if allocation.slots > limits.max_np:
        return Rejected(f"{allocation.slots} slots are more than --max-np {limits.max_np}")
    if allocation.slots < limits.min_np:
        return Rejected(f"{allocation.slots} slots are fewer than --min-np {limits.min_np}")
    problem = _problem(allocation.hosts, check_host)
    return Accepted(allocation) if problem is None else Rejected(problem)


def _problem(hosts: Iterable[HostSlots], check_host: CheckHost) -> str | None:
    return next(filter(None, (check_host(host) for host in hosts if host.slots)), None)


class AllocationSource:
    """Where a job's allocations come from; asked now and then, it reports each distinct rejection once.

    After `MAX_REJECTIONS` of them it reports none until it has accepted something.
    """

    def __init__(self) -> None:
        self._reported: set[str] = set()
        self.allocation: Allocation | None = None
        """The one in force; None before the first."""
        self.rejection = ""
        """Why what there is changes nothing; empty if it is in force."""

    def poll(self, now: float) -> Verdict:
        """What has not been reported yet, or None. `now` is in seconds of a monotonic clock."""
        raise NotImplementedError

    def use(self, devices: Used, demand: int) -> None:
        """The job has these devices, and could use so many slots more than there are."""

    def close(self) -> None:
        """Nobody asks any more."""

    def _judge(self, verdict: Verdict) -> Verdict:
        if isinstance(verdict, Rejected):
            self.rejection = verdict.reason
            return verdict if self._is_news(verdict.reason) else None
        if verdict is not None:
            self.allocation = verdict.allocation
        self.rejection = ""
        self._reported.clear()
        return verdict

    def _is_news(self, reason: str) -> bool:
        if reason in self._reported or len(self._reported) == MAX_REJECTIONS:
            return False
        self._reported.add(reason)
        return True


class AllocationFollower(AllocationSource):
    """Looks at a file whenever it is asked."""

    def __init__(self, path: Path, limits: SizeLimits, check_host: CheckHost) -> None:
        super().__init__()
        self._path = path
        self._limits = limits
        self._check_host = check_host
        self._looked: object = None
        self._read_at = float("-inf")
        self._text: str | None = None

    def poll(self, now: float) -> Verdict:
        """Look at the file; what has not been reported yet, or None."""
        look = _metadata(self._path)
        if look == self._looked and now - self._read_at < REREAD_INTERVAL:
            return None
        is_first = self._looked is None
        self._looked, self._read_at = look, now
        try:
            text = read(self._path)
        except FileNotFoundError:
            reason = "is missing: write it, or name another with --allocation"
            return self._judge(Rejected(f"the allocation file {self._path} {reason}"))
        except OSError as error:
            return self._judge(Rejected(f"the allocation file {self._path} cannot be read: {error.strerror}"))
        except AllocationError as error:
            return self._judge(Rejected(str(error)))
        if text == self._text and not is_first and not self.rejection:
            return None
        self._text = text
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


@dataclass(frozen=True)
class _Found:
    """Hosts that can be used, and what is wrong with the others."""

    hosts: tuple[HostSlots, ...]
    problems: tuple[str, ...]


class SourceFollower(AllocationSource):
    """Asks a source again and again, in a thread of its own, as it may take its time.

    Slots beyond `limits.max_np` are left out, and so are hosts that cannot be used yet: a new pod has a name
    before it has an address. `interval` is in seconds, from one answer to the next question.
    """

    def __init__(
        self, source: HostSource, limits: SizeLimits, check_host: CheckHost, interval: float = QUERY_INTERVAL
    ) -> None:
        super().__init__()
        self._source = source
        self._limits = limits
        self._check_host = check_host
        self._interval = interval
        self._unusable: frozenset[str] = frozenset()
        self._news: _Found | str | None = None
        """Hosts, or what is wrong; None once that is known."""
        self._usage: tuple[Used, int] = frozenset(), limits.max_np
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="edt-hosts", daemon=True)
        self._thread.start()

    def poll(self, now: float) -> Verdict:
        """What has not been reported yet, or None; the time does not matter."""
        with self._lock:
            news, self._news = self._news, None
        if news is None:
            return None
        if isinstance(news, str):
            return self._judge(Rejected(news))
        hosts = cap(map(unbound, news.hosts), self._limits.max_np)
        if self.allocation is not None and set(hosts) == set(self.allocation.hosts):
            return self._judge(None)
        slots = sum(host.slots for host in hosts)
        if slots < self._limits.min_np:
            least = f"fewer than --min-np {self._limits.min_np}"
            reason = "; ".join((f"{self._source} shows {slots} slots, {least}", *news.problems))
            return self._judge(Rejected(reason))
        generation = 1 if self.allocation is None else self.allocation.generation + 1
        return self._judge(Accepted(Allocation(generation, hosts), changed=time.time()))

    def use(self, devices: Used, demand: int) -> None:
        """Have the source told so with its next question."""
        with self._lock:
            self._usage = devices, demand

    def close(self) -> None:
        """Ask no more. A question under way is left to its time limit, and the source is closed after it."""
        self._stopped.set()
        self._thread.join(CLOSE_TIMEOUT)

    def _serve(self) -> None:
        usage = Usage(self._source)
        while not self._stopped.is_set():
            self._ask(usage)
            self._stopped.wait(self._interval)
        try:
            usage.close()
        except Exception as error:
            log.warning("%s cannot be closed", self._source, exc_info=error)

    def _ask(self, usage: Usage) -> None:
        with self._lock:
            now_used, demand = self._usage
        news: _Found | str
        try:
            usage.tell(now_used, demand)
            news = self._usable(self._source.hosts())
        except SourceError as error:
            news = str(error)
        except Exception as error:
            log.warning("%s failed", self._source, exc_info=error)
            news = f"{self._source} failed: {type(error).__name__}: {error}"
        with self._lock:
            self._news = news

    def _usable(self, hosts: Iterable[HostSlots]) -> "_Found":
        """Check each host, here in the thread, as a resolver may take its time."""
        checked = [
            (host, self._check_host(host) if host.slots else None)
            for host in usable(hosts, str(self._source))
        ]
        problems = frozenset(problem for _, problem in checked if problem is not None)
        for problem in sorted(problems - self._unusable):
            log.warning("%s: %s; left out until it can be used", self._source, problem)
        self._unusable = problems
        return _Found(tuple(host for host, problem in checked if problem is None), tuple(sorted(problems)))
