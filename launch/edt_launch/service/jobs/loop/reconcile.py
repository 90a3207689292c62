"""Carries out the actions of a step: files, rows, processes."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from edt_launch.cluster.allocation import HostSlots
from edt_launch.core.errors import AllocationError, is_passing
from edt_launch.core.files.atomic import write_atomically
from edt_launch.core.system.accounts import acting_as_owner_of
from edt_launch.service.app.home import Home
from edt_launch.service.cluster.records import AllocationRecord
from edt_launch.service.db.store import Store
from edt_launch.service.jobs.loop import device_grant
from edt_launch.service.jobs.loop.change_logger import ChangeLogger
from edt_launch.service.jobs.loop.device_grant import DeviceGrant
from edt_launch.service.jobs.loop.launching.launchers import Launchers
from edt_launch.service.jobs.loop.observed import (
    Action,
    Kill,
    Launch,
    Move,
    Note,
    Prepare,
    Remember,
    Send,
    Sweep,
    WriteFile,
)
from edt_launch.service.jobs.records import WITHOUT_LAUNCHER, JobRecord
from edt_launch.service.jobs.states import State
from edt_launch.service.jobs.store import NoSuchJobError

log = logging.getLogger(__name__)


@dataclass
class Applied:
    """What has been done, by the jobs' ids.

    Attributes:
        records: rows that have been read again meanwhile; None for one that is not there any more.
        notes: columns that have been written besides, after these.
        changes: of allocations, which the history has now.
        grants: contents of allocation files that have been written.
    """

    records: dict[str, JobRecord | None] = field(default_factory=dict)
    notes: dict[str, dict[str, Any]] = field(default_factory=dict)
    changes: list[AllocationRecord] = field(default_factory=list)
    grants: dict[str, DeviceGrant] = field(default_factory=dict)


class Reconciler:
    """Does actions in their order. `between` is called before each single change; tests stop it there.

    `listed` are the hosts as their source shows them now, by name.
    """

    def __init__(
        self,
        home: Home,
        store: Store,
        launchers: Launchers,
        between: Callable[[], None] = lambda: None,
        listed: Callable[[], Mapping[str, HostSlots]] = dict,
    ) -> None:
        self._home = home
        self._store = store
        self._launchers = launchers
        self._between = between
        self._listed = listed
        self._problems = ChangeLogger()

    def apply(self, now: float, actions: Iterable[Action]) -> Applied:
        """Carry out actions; what cannot be done with one job is left, and tried again by the next step.

        Raises:
            sqlalchemy.exc.SQLAlchemyError: of the database. What had been done by then is known to files and
                rows alone; columns that were to be written in the end are lost.
        """
        done = Applied()
        failed: set[str] = set()
        for action in actions:
            if action.job in failed:
                continue
            what = f"{action.job}: {type(action).__name__}"
            try:
                self._do(now, action, done)
                self._problems.recovered(what)
            except (OSError, AllocationError) as error:
                self._problems.failed(what, error)
                failed.add(action.job)
            except NoSuchJobError:
                failed.add(action.job)
                done.records[action.job] = None
        if done.notes:
            self._between()
            self._store.jobs.record(done.notes)
        if done.changes:
            self._between()
            self._store.history.add(done.changes)
        return done

    def _do(self, now: float, action: Action, done: Applied) -> None:
        match action:
            case Note(job, fields):
                done.notes[job] = {**done.notes.get(job, {}), **fields}
                return
            case Remember(change):
                done.changes.append(change)
                return
        self._between()
        match action:
            case Prepare(job):
                self._launchers.prepare(job, self._home.job(job))
            case WriteFile(job, content):
                folder = self._home.job(job)
                with acting_as_owner_of(folder.root):
                    write_atomically(folder.allocation, device_grant.write(content, self._listed()))
                done.grants[job] = content
            case Move(job, to, reason, fields):
                fields = {**done.notes.pop(job, {}), **fields}
                done.records[job] = self._store.jobs.move(job, to, reason, now, **fields)
            case Launch(record):
                self._launch(now, record, done)
            case Send(job, request):
                self._launchers.send(job, self._home.job(job), request)
            case Kill(job):
                self._launchers.kill(job, self._home.job(job))
            case Sweep(job):
                self._launchers.sweep(job)

    def _launch(self, now: float, record: JobRecord, done: Applied) -> None:
        try:
            self._launchers.start(record, self._home.job(record.id))
        except (OSError, ValueError) as error:
            if is_passing(error):
                raise  # the job has not been started, and goes back to the queue
            log.warning("%s cannot be started: %s", record.id, error)
            fields = {**WITHOUT_LAUNCHER, "failure": str(error)}
            reason = "it could not be started"
            done.records[record.id] = self._store.jobs.move(record.id, State.FAILED, reason, now, **fields)
