"""What the loop knows of the pool, and does about it.

It remembers nothing that is not in the database or the jobs' files, but what is quicker not to read again.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from edt_launch.allocator.forecast.demand import demand
from edt_launch.allocator.model import Memory, Options, dump, load
from edt_launch.cluster.allocation import HostSlots
from edt_launch.cluster.hosts import usable, ways
from edt_launch.cluster.sources import transport_of
from edt_launch.core.command_line import of
from edt_launch.core.errors import AllocationError
from edt_launch.core.files import plain_files
from edt_launch.core.run_options import PortOptions
from edt_launch.core.system.accounts import Accounts
from edt_launch.launcher.transports.choice import TRANSPORTS
from edt_launch.service.app.home import Home
from edt_launch.service.bus import Bus, Topic
from edt_launch.service.cluster.machines import Machines
from edt_launch.service.cluster.records import HostRecord
from edt_launch.service.db.store import Store
from edt_launch.service.jobs import allocator_input
from edt_launch.service.jobs.loop import device_grant, idling, lifecycle
from edt_launch.service.jobs.loop.change_logger import ChangeLogger
from edt_launch.service.jobs.loop.granted import granted, most_workers, stored_grant
from edt_launch.service.jobs.loop.journal import Journal
from edt_launch.service.jobs.loop.launching.launchers import Launchers
from edt_launch.service.jobs.loop.observed import (
    Action,
    AllocationRound,
    Launch,
    ObservedJob,
    ObservedLauncher,
    ObservedState,
    Prepare,
)
from edt_launch.service.jobs.loop.progress import LauncherRun
from edt_launch.service.jobs.loop.reconcile import Reconciler
from edt_launch.service.jobs.loop.step import step, write_again
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import ENDED, HAS_LAUNCHER, State

log = logging.getLogger(__name__)

SLOW = 0.01
"""Seconds of processor time: of the jobs at which the last look took longer, one is looked at each time."""

RECORD = 1.0
"""Seconds between two times that progress is written down."""

MEASURE = 10.0
"""Seconds between two times that the use of GPUs is measured."""

KEEP = 30.0
"""Seconds between two times that remembered usage is written down."""

LAUNCHERS_OPTIONS = (*dict.fromkeys(kind.options for kind in TRANSPORTS), PortOptions)
"""The settings of the service that are options of its jobs' launchers."""


class LoopSettings(allocator_input.Constants, Protocol):
    """The settings that the loop looks at; `service.app.settings.Settings` has them."""

    coalesce: float
    interval: float
    protected: float
    horovodrun: bool
    max_log_size: int
    idle_timeout: float
    job_users: str | None

    @property
    def paths(self) -> Home: ...  # noqa: D102

    @property
    def groups(self) -> tuple[object, ...]: ...  # noqa: D102


class Pool:
    """What the loop knows, read again where it may have changed.

    Args:
        settings, store: of the service.
        bus: told of changes.
        launchers: of its jobs.
        between: see `reconcile.Reconciler`.
        options: of the allocator; from the settings by default.
        processor_time: of the calling thread.
        told, listed: see `loop.run`.
        machines: know how the GPUs of this machine are used.
    """

    def __init__(
        self,
        settings: LoopSettings,
        store: Store,
        bus: Bus,
        launchers: Launchers | None = None,
        between: Callable[[], None] = lambda: None,
        options: Options | None = None,
        processor_time: Callable[[], float] = time.thread_time,
        told: Callable[[int], None] = lambda demand: None,
        listed: Callable[[], Mapping[str, HostSlots]] = dict,
        machines: Machines | None = None,
    ) -> None:
        self._idle_timeout = settings.idle_timeout
        self._machines = machines or Machines()
        self._computed: dict[str, float] = {}
        """When jobs' GPUs were seen computing last, by their ids."""
        self._home = settings.paths
        self._interval = settings.interval
        self._options = options or allocator_input.options(settings)
        self._protected = settings.protected
        self._store = store
        self._bus = bus
        self._launchers = launchers or Launchers(
            horovodrun=settings.horovodrun,
            max_log_size=settings.max_log_size,
            accounts=None if settings.job_users is None else Accounts(settings.job_users),
            groups=tuple(of(settings.groups, kind) for kind in LAUNCHERS_OPTIONS),
        )
        self._reconciler = Reconciler(self._home, store, self._launchers, between, listed)
        self._processor_time = processor_time
        self._told = told
        self._listed = listed
        self._ways: dict[str, tuple[str, str]] = {}
        """How hosts were reached when files were compared with that."""
        self._jobs: dict[str, ObservedJob] = {}
        self._ended: dict[str, State | None] = {}
        """Of jobs that others wait for, and that have ended; None for those that were deleted."""
        self._slow: dict[str, None] = {}
        """Slow jobs; the one that was looked at last is the last."""
        self._hosts: tuple[HostRecord, ...] = ()
        self._journals: dict[str, Journal] = {}
        self._read_files: set[str] = set()
        self._read_at: float | None = None
        self._recorded_at = self._kept_at = self._measured_at = 0.0
        self._last: AllocationRound | None = None
        self._memory = Memory()
        self._problems = ChangeLogger()

    # Looking.

    def forget(self) -> None:
        """Something went wrong in the middle: rows and files alone say how far it got."""
        self._jobs.clear()
        self._read_files.clear()
        self._read_at = None

    def read_again(self) -> None:
        """The rows have changed."""
        self._read_at = None

    def look(self, now: float) -> bool:
        """See what jobs, files and processes have done; whether that is a reason to act at once."""
        if self._read_at is None or not 0 <= now - self._read_at < self._interval:
            self._read_rows(now)
        has_happened = False
        to_see = {id_ for id_, job in self._jobs.items() if _is_open(job)}
        to_see -= set([id_ for id_ in self._slow if id_ in to_see][1:])
        for id_, job in self._jobs.items():
            if id_ in to_see:
                self._jobs[id_] = seen = self._timed(job)
                has_happened |= _news(job) != _news(seen)
        if not 0 <= now - self._recorded_at < RECORD:
            self._recorded_at = now
            notes = [note for job in self._jobs.values() for note in lifecycle.record_progress(job)]
            if notes:
                self._apply(0.0, notes)
                is_seen = any(not note.fields.keys().isdisjoint(lifecycle.LOST) for note in notes)
                self._bus.notify(Topic.PROGRESS, *([Topic.JOBS] if is_seen else []))
        return has_happened

    def _read_rows(self, now: float) -> None:
        records = self._store.jobs.live()
        # An earlier version may have stored odd names.
        stored = (
            (host, HostSlots(host.name, len(host.devices), host.devices)) for host in self._store.hosts.all()
        )
        self._hosts = tuple(host for host, slots in stored if usable([slots], "the table of hosts"))
        named = (transport_of(host.source) for host in self._hosts if host.is_up)
        self._launchers.transport = next(filter(None, named), None)
        known = self._jobs
        self._jobs = {
            record.id: replace(known[record.id], record=record)
            if record.id in known
            else self._seen(ObservedJob(record, stored_grant(record)))
            for record in records
        }
        awaited = {id_ for record in records for id_ in record.after} - self._jobs.keys()
        found = self._store.jobs.some(awaited) if awaited else {}
        self._ended = {id_: found[id_].state if id_ in found else None for id_ in awaited}
        self._shares = tuple(self._store.shares.all())
        if self._last is None:
            self._memory = load(self._store.memory.get(allocator_input.MEMORY, {}))
        for id_ in self._journals.keys() - self._jobs.keys():
            self._forget(id_)
        self._slow = {id_: None for id_ in self._slow if id_ in self._jobs}
        self._read_files &= self._jobs.keys()
        self._read_at = now

    def _timed(self, job: ObservedJob) -> ObservedJob:
        """The job as it is seen now, and whether looking took long."""
        began = self._processor_time()
        seen = self._seen(job)
        is_slow = self._processor_time() - began > SLOW
        self._slow.pop(job.record.id, None)
        if is_slow:
            self._slow[job.record.id] = None
        return replace(seen, is_slow=is_slow)

    def _seen(self, job: ObservedJob) -> ObservedJob:
        """The job with what its processes and events say now; as it was, if that cannot be found out."""
        id_ = job.record.id
        what = f"{id_}: looking at it"
        try:
            if id_ not in self._read_files:  # once: nobody else writes it
                job = replace(job, grant=granted(job.record, self._home.job(id_)))
                self._read_files.add(id_)
            seen = self._looked_at(job)
        except Exception as error:  # noqa: BLE001 - whatever a job has written must not stop the others; it is logged
            self._problems.failed(what, error, has_trace=not isinstance(error, OSError))
            is_alive = job.record.state in HAS_LAUNCHER
            trouble = f"its files cannot be read: {_shown(error)}"
            return replace(job, launcher=replace(job.launcher, is_alive=is_alive), trouble=trouble)
        self._problems.recovered(what)
        return seen

    def _looked_at(self, job: ObservedJob) -> ObservedJob:
        id_ = job.record.id
        paths = self._home.job(id_)
        if id_ not in self._journals:
            self._journals[id_] = Journal(paths.output.events, paths.output.run / "progress.json")
        journal = self._journals[id_]
        journal.most = most_workers(job, self._hosts)
        is_alive = self._launchers.is_alive(id_, paths)
        journal.read_on(is_final=not is_alive)
        progress = journal.progress
        launcher = self._launchers.look(id_, paths, is_alive, job.grant, progress.run)
        return replace(job, progress=progress, launcher=launcher, trouble="", is_behind=journal.is_behind)

    # Acting.

    def act(self, now: float) -> float | None:
        """Decide, and carry it out; when to do so again at the latest, None for no such time."""
        self._measure(now)
        computed = self._computed.get
        jobs = tuple(replace(job, computed=computed(id_)) for id_, job in self._jobs.items())
        memory = self._memory
        observed = ObservedState(
            jobs,
            self._hosts,
            self._shares,
            memory,
            self._last,
            self._options,
            self._protected,
            self._idle_timeout,
            self._ended,
        )
        decided = step(now, observed)
        self._apply(now, decided.actions)
        self._apply(now, self._outdated())
        if decided.actions:
            self._bus.notify(Topic.JOBS)
        self._last = decided.round
        self._told(demand(now, decided.round.cluster, decided.round.jobs))
        memory = decided.round.plan.memory
        if memory != self._memory:
            self._store.memory.set(allocator_input.MEMORY, dump(memory))
            self._memory = memory
        if not 0 <= now - self._kept_at < KEEP:
            self._kept_at = now
            self._keep_usage()
        return decided.again_at

    def _outdated(self) -> Sequence[Action]:
        """Have files say how their hosts are reached, where that is another way than they say."""
        listed = self._listed()
        if ways(listed) == self._ways or not listed:
            return []
        self._ways = ways(listed)
        running = [job for job in self._jobs.values() if job.record.state in HAS_LAUNCHER and job.grant.held]
        return [action for job in running if self._is_outdated(job) for action in write_again(job)]

    def _is_outdated(self, job: ObservedJob) -> bool:
        try:
            text = plain_files.read(self._home.job(job.record.id).allocation).decode(errors="replace")
            return device_grant.is_outdated(text, self._listed())
        except (OSError, AllocationError) as error:
            log.warning("%s: its allocation file cannot be read: %s", job.record.id, error)
            return False

    def _measure(self, now: float) -> None:
        """See which jobs' GPUs compute, if that matters."""
        if not self._idle_timeout or 0 <= now - self._measured_at < MEASURE:
            return
        self._measured_at = now
        hosts = [host for host in self._hosts if host.source not in allocator_input.SHARING]
        found = self._machines.loads(hosts, lambda: now)
        loads = {
            (host, name): gpu.utilization for host, load in found.items() for name, gpu in load.gpus.items()
        }
        self._computed = idling.computed(now, self._jobs.values(), loads, self._computed)

    def close(self) -> None:
        """Write down what would otherwise have to be found out again."""
        for journal in self._journals.values():
            journal.keep()
        self._launchers.close()
        self._keep_usage()

    def _apply(self, now: float, actions: Sequence[Action]) -> None:
        done = self._reconciler.apply(now, actions)
        for id_, record in done.records.items():
            self._replace(id_, record)
        for id_, fields in done.notes.items():  # written last
            if id_ in self._jobs:
                self._replace(id_, replace(self._jobs[id_].record, **fields))
        for id_, content in done.grants.items():
            if id_ in self._jobs:
                self._jobs[id_] = replace(self._jobs[id_], grant=content)
        for action in actions:
            if isinstance(action, Launch | Prepare) and action.job in self._jobs:
                self._jobs[action.job] = self._seen(self._jobs[action.job])

    def _replace(self, job: str, record: JobRecord | None) -> None:
        if record is None or record.state in ENDED:
            if record is not None:
                self._ended[job] = record.state
            self._jobs.pop(job, None)
            self._forget(job)
        else:
            self._jobs[job] = replace(self._jobs[job], record=record)

    def _forget(self, job: str) -> None:
        if job in self._journals:
            self._journals.pop(job).keep()
        self._launchers.forget(job)

    def _keep_usage(self) -> None:
        """Write down remembered usage; what is lost by a crash is that of half a minute."""
        if self._last is None:
            return
        self._store.shares.remember(
            {owner.name: allocator_input.usage(owner) for owner in self._last.cluster.owners}
        )
        self._store.jobs.record(
            {
                job.id: {
                    "service": job.usage.service,
                    "entitlement": job.usage.entitlement,
                    "usage_at": job.usage.at,
                    "attained": job.usage.attained,
                }
                for job in self._last.jobs
            }
        )


def _is_open(job: ObservedJob) -> bool:
    """Whether its files may still tell something."""
    is_left = job.launcher.has_leftovers
    return job.record.state in HAS_LAUNCHER or job.is_hidden or job.is_behind or is_left


def _news(job: ObservedJob) -> tuple[ObservedLauncher, LauncherRun | None, str, bool]:
    """What of a job is a reason to act at once, when it changes."""
    return job.launcher, job.run, job.trouble, job.is_behind


def _shown(error: Exception) -> str:
    """An error without what a job may have written."""
    return (error.strerror or "") if isinstance(error, OSError) else type(error).__name__
