"""Jobs, and the states that they have had."""

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from edt_launch.service.db.engine import Database
from edt_launch.service.db.tables import jobs, runs, transitions
from edt_launch.service.experiments.records import TRIAL_ENDS, RunRecord
from edt_launch.service.experiments.stores.experiments import add_run
from edt_launch.service.jobs.query import JobQuery
from edt_launch.service.jobs.records import (
    OBSERVED,
    PROGRESS,
    HolderRecord,
    JobRecord,
    NamedJob,
    Page,
    TransitionRecord,
)
from edt_launch.service.jobs.specification import JobChange
from edt_launch.service.jobs.states import (
    ENDED,
    HAS_LAUNCHER,
    LIVE,
    NEXT,
    IllegalTransitionError,
    State,
    Wanted,
)

ALL = JobQuery()

LAST = 10
"""States that the message about an illegal transition tells."""


class NoSuchJobError(Exception):
    """There is no job of that id."""

    def __init__(self, job: str) -> None:
        super().__init__(f"there is no job {job!r}; `edt ps --all` lists them")
        self.job = job


class Jobs:
    """The table of jobs.

    The interface writes the desired state by `add`, `set_wanted` and `change`; the loop writes the observed
    state by `record` and `move`. A call is one transaction. `NoSuchJobError` is raised by those that return
    a job of an id.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, job: JobRecord, run: RunRecord | None = None) -> tuple[JobRecord, bool]:
        """Store a new job, and the run of an experiment that it is, if it is one.

        Returns:
            The job as it is stored, and whether it was added; if its owner has used its idempotency key
            before, the job of then, unchanged.

        Raises:
            GoneError: the run's experiment is gone.
        """
        values = {name: value for name, value in vars(job).items() if name != "number"}
        try:
            with self._database.writing() as connection:
                connection.execute(insert(jobs).values(values))
                _note(connection, job.id, job.submitted, None, job.state, "submitted")
                if run is not None:
                    add_run(connection, replace(run, job=job.id))
                return _get(connection, job.id), True
        except IntegrityError:
            earlier = self.submitted_as(job.owner, job.idempotency_key) if job.idempotency_key else None
            if earlier is None:  # the id is taken
                raise
            return earlier, False

    def submitted_as(self, owner: str, key: str) -> JobRecord | None:
        """The job that `owner` has submitted with an idempotency key."""
        rows = self._database.rows(select(jobs).where(jobs.c.owner == owner, jobs.c.idempotency_key == key))
        return JobRecord(*rows[0]) if rows else None

    def get(self, job: str) -> JobRecord:
        """One job."""
        with self._database.reading() as connection:
            return _get(connection, job)

    def live(self) -> list[JobRecord]:
        """All jobs that have not ended, in the order of their submission."""
        return list(self.page(JobQuery(states=LIVE, limit=None)).jobs)

    def holders(self) -> list[HolderRecord]:
        """All jobs that have not ended, with the devices they have; quicker than `live`."""
        columns = [jobs.c[field.name] for field in fields(HolderRecord)]
        query = select(*columns).where(jobs.c.state.in_(sorted(LIVE))).order_by(jobs.c.number)
        return [HolderRecord(*row) for row in self._database.rows(query)]

    def suspended(self) -> Mapping[tuple[str, str], float]:
        """Hosts and devices of running jobs whose workers have failed, and when they are tried again."""
        query = select(jobs.c.suspended).where(jobs.c.state.in_(sorted(HAS_LAUNCHER)))
        rows = self._database.rows(query)
        return {(host, device): until for (devices,) in rows for host, device, until in devices}

    def unreachable(self) -> Mapping[str, str]:
        """Hosts that running jobs say they cannot reach, and why."""
        query = select(jobs.c.unreachable).where(jobs.c.state.in_(sorted(HAS_LAUNCHER)))
        rows = self._database.rows(query)
        return {host: reason for (hosts,) in rows for host, _, reason in hosts}

    def progress(self) -> Mapping[str, Mapping[str, Any]]:
        """Of the jobs that run, by their ids, the fields that change all the time (`records.PROGRESS`)."""
        query = select(jobs.c.id, *(jobs.c[name] for name in PROGRESS))
        rows = self._database.rows(query.where(jobs.c.state.in_(sorted(HAS_LAUNCHER))))
        return {id_: dict(zip(PROGRESS, values, strict=True)) for id_, *values in rows}

    def page(self, wanted: JobQuery = ALL) -> Page:
        """The jobs that are looked for, and where the next page begins."""
        page = [JobRecord(*row) for row in self._database.rows(wanted.statement())]
        limit = wanted.limit
        if limit is None or len(page) <= limit:
            return Page(page, None)
        return Page(page[:limit], page[limit - 1].number if wanted.is_by_number else wanted.after + limit)

    def some(self, wanted: Collection[str]) -> Mapping[str, JobRecord]:
        """Jobs by their ids; those that are not there are left out."""
        rows = self._database.rows(select(jobs).where(jobs.c.id.in_(sorted(wanted))))
        return {row.id: JobRecord(*row) for row in rows}

    def named(self, wanted: Collection[str]) -> Mapping[str, NamedJob]:
        """Names and numbers of jobs by their ids; those that are not there are left out."""
        query = select(jobs.c.id, jobs.c.name, jobs.c.number).where(jobs.c.id.in_(sorted(wanted)))
        return {id_: NamedJob(name, number) for id_, name, number in self._database.rows(query)}

    def ids(self) -> frozenset[str]:
        """Those of all jobs."""
        return frozenset(row.id for row in self._database.rows(select(jobs.c.id)))

    def counts(self) -> Mapping[State, int]:
        """How many jobs are in each state; states without any are left out."""
        query = select(jobs.c.state, func.count()).group_by(jobs.c.state)
        return dict(map(tuple, self._database.rows(query)))

    def state(self, job: str) -> State | None:
        """Where a job stands; None if there is none of that id."""
        state: State | None = self._database.value(select(jobs.c.state).where(jobs.c.id == job))
        return state

    def set_wanted(self, job: str, wanted: Wanted) -> JobRecord:
        """Write down what the owner wants of a job. One that is to stop stays so; one that has ended, too."""
        free = and_(jobs.c.id == job, jobs.c.state.not_in(sorted(ENDED)), jobs.c.wanted != Wanted.STOP)
        with self._database.writing() as connection:
            connection.execute(update(jobs).where(free).values(wanted=wanted))
            return _get(connection, job)

    def change(self, job: str, **desired: Any) -> JobRecord:
        """Change what the owner may change: fields of `JobChange`."""
        _only(desired, JobChange.model_fields)
        with self._database.writing() as connection:
            if desired:
                connection.execute(update(jobs).where(jobs.c.id == job).values(desired))
            return _get(connection, job)

    def record(self, observed: Mapping[str, Mapping[str, Any]]) -> None:
        """Write what was observed (`records.OBSERVED`) of jobs, by their ids; all or none.

        Unknown ids are left out.
        """
        with self._database.writing() as connection:
            for job, values in observed.items():
                _only(values, OBSERVED)
                if values:
                    connection.execute(update(jobs).where(jobs.c.id == job).values(dict(values)))

    def move(self, job: str, to: State, reason: str, now: float, **observed: Any) -> JobRecord:
        """Bring a job to another state, with what becomes true by that.

        Sets `reason`, and `ended` when the state is final. A job that is there already gets the values alone.

        Raises:
            NoSuchJobError: there is none of that id.
            IllegalTransitionError: the table of `states` does not allow it; nothing is changed.
        """
        _only(observed, OBSERVED)
        with self._database.writing() as connection:
            before = _get(connection, job, lock=True).state
            values = {"reason": reason, **observed}
            if before is not to:
                if to not in NEXT[before]:
                    history = [f"{past.after}" for past in _transitions(connection, job)[-LAST:]]
                    raise IllegalTransitionError(job, before, to, history)
                values["state"] = to
                if to in ENDED:
                    values.setdefault("ended", now)
                _note(connection, job, now, before, to, reason)
            connection.execute(update(jobs).where(jobs.c.id == job).values(values))
            return _get(connection, job)

    def transitions(self, job: str) -> list[TransitionRecord]:
        """The states that a job has had, oldest first."""
        with self._database.reading() as connection:
            return _transitions(connection, job)

    def transitions_since(self, since: float, limit: int) -> list[TransitionRecord]:
        """The newest `limit` changes of jobs' states since a time, oldest first."""
        query = select(transitions).where(transitions.c.time >= since)
        query = query.order_by(transitions.c.number.desc()).limit(limit)
        return [TransitionRecord(**row._mapping) for row in self._database.rows(query)][::-1]

    def endings(self, after: int, limit: int) -> list[TransitionRecord]:
        """The first `limit` ends of jobs after the transition of that number."""
        query = select(transitions).where(
            transitions.c.number > after, transitions.c.after.in_(sorted(ENDED))
        )
        rows = self._database.rows(query.order_by(transitions.c.number).limit(limit))
        return [TransitionRecord(**row._mapping) for row in rows]

    def last_transition(self) -> int:
        """The number of the newest change of a job's state; 0 without any."""
        return int(self._database.value(select(func.max(transitions.c.number))) or 0)

    def ended_before(self, time: float, limit: int) -> list[str]:
        """The ids of `limit` jobs that ended before then and can be deleted, those that ended first."""
        query = select(jobs.c.id).where(_is_over(), jobs.c.ended < time).order_by(jobs.c.ended).limit(limit)
        return [row.id for row in self._database.rows(query)]

    def delete(self, job: str) -> bool:
        """Forget a job that has ended; False if it has not, is not there, or its trial awaits its end."""
        return self._database.execute(delete(jobs).where(jobs.c.id == job, _is_over()))


def _is_over() -> ColumnElement[bool]:
    """Whether a job has ended, and no trial awaits its end."""
    is_awaited = exists().where(
        runs.c.job == jobs.c.id, runs.c.place.is_not(None), runs.c.state.not_in(sorted(TRIAL_ENDS))
    )
    return and_(jobs.c.state.in_(sorted(ENDED)), ~is_awaited)


def _get(connection: Connection, job: str, lock: bool = False) -> JobRecord:
    query = select(jobs).where(jobs.c.id == job)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise NoSuchJobError(job)
    return JobRecord(*row)


def _transitions(connection: Connection, job: str) -> list[TransitionRecord]:
    query = select(transitions).where(transitions.c.job == job).order_by(transitions.c.number)
    return [TransitionRecord(**row._mapping) for row in connection.execute(query)]


def _note(
    connection: Connection, job: str, time: float, before: State | None, after: State, reason: str
) -> None:
    values = {"job": job, "time": time, "before": before, "after": after, "reason": reason}
    connection.execute(insert(transitions).values(values))


def _only(values: Mapping[str, Any], known: Collection[str]) -> None:
    if unknown := values.keys() - known:
        raise TypeError(f"no such fields here: {', '.join(sorted(unknown))}; there are {sorted(known)}")
