"""Jobs, and the states that they have had."""

from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, Row, and_, delete, exists, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from edt_launch.service.database.engine import Database
from edt_launch.service.database.records import FACTS, WISHES, JobRecord, Page, TransitionRecord
from edt_launch.service.database.search_records import TRIAL_ENDS
from edt_launch.service.database.tables import jobs, transitions, trials
from edt_launch.service.database.values import read_held, write_held
from edt_launch.service.states import ENDED, LIVE, IllegalTransitionError, State, Wanted, check

LAST = 10
"""States that the message about an illegal transition tells."""


class NoSuchJobError(Exception):
    """There is no job of that id.

    Args:
        job: the id.
    """

    def __init__(self, job: str) -> None:
        super().__init__(f"there is no job {job!r}; `edt ps --all` lists them")
        self.job = job


class Jobs:
    """The table of jobs.

    Users' wishes come in by `add`, `wish` and `change`; the loop writes facts by `record` and `move`. A call
    is one transaction.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, job: JobRecord) -> tuple[JobRecord, bool]:
        """Store a new job.

        Returns:
            The job as it is stored, and whether it was added; if its owner has used its idempotency key
            before, the job of then, unchanged.
        """
        values = {name: value for name, value in _values(job).items() if name != "number"}
        try:
            with self._database.writing() as connection:
                connection.execute(insert(jobs).values(values))
                first = TransitionRecord(job.id, job.submitted, None, job.state, "submitted")
                _note(connection, first)
                return _get(connection, job.id), True
        except IntegrityError:
            earlier = self.submitted_as(job.owner, job.idempotency_key) if job.idempotency_key else None
            if earlier is None:  # the id is taken
                raise
            return earlier, False

    def submitted_as(self, owner: str, key: str) -> JobRecord | None:
        """The job that `owner` has submitted with an idempotency key."""
        query = select(jobs).where(jobs.c.owner == owner, jobs.c.idempotency_key == key)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        return None if row is None else _record(row)

    def get(self, job: str) -> JobRecord:
        """One job.

        Raises:
            NoSuchJobError: there is none of that id.
        """
        with self._database.reading() as connection:
            return _get(connection, job)

    def live(self) -> list[JobRecord]:
        """All jobs that have not ended, in the order of their submission."""
        return list(self.page(states=LIVE, limit=None).jobs)

    def page(
        self,
        states: Collection[State] | None = None,
        owner: str | None = None,
        ended_since: float | None = None,
        after: int = 0,
        limit: int | None = 1000,
        newest: bool = False,
    ) -> Page:
        """Jobs in the order of their submission.

        Args:
            states: those in one of these; None for all.
            owner: those of one user; None for all.
            ended_since: those, too, that have ended since then, whatever `states` says.
            after: those whose number is higher.
            limit: so many at most; None for all.
            newest: in the opposite order; `next` and `after` make no sense then.
        """
        query = select(jobs).where(jobs.c.number > after)
        query = query.order_by(jobs.c.number.desc() if newest else jobs.c.number)
        if states is not None:
            wanted = jobs.c.state.in_(sorted(states))
            query = query.where(wanted if ended_since is None else or_(wanted, jobs.c.ended >= ended_since))
        if owner is not None:
            query = query.where(jobs.c.owner == owner)
        if limit is not None:
            query = query.limit(limit + 1)
        with self._database.reading() as connection:
            found = [_record(row) for row in connection.execute(query)]
        if limit is None or len(found) <= limit:
            return Page(found, None)
        return Page(found[:limit], found[limit - 1].number)

    def some(self, wanted: Collection[str]) -> Mapping[str, JobRecord]:
        """Jobs by their ids; those that are not there are left out."""
        query = select(jobs).where(jobs.c.id.in_(sorted(wanted)))
        with self._database.reading() as connection:
            return {row.id: _record(row) for row in connection.execute(query)}

    def ids(self) -> frozenset[str]:
        """Those of all jobs."""
        with self._database.reading() as connection:
            return frozenset(connection.execute(select(jobs.c.id)).scalars())

    def counts(self) -> Mapping[State, int]:
        """How many jobs are in each state; states without any are left out."""
        query = select(jobs.c.state, func.count()).group_by(jobs.c.state)
        with self._database.reading() as connection:
            return {State(state): count for state, count in connection.execute(query)}

    def state(self, job: str) -> State | None:
        """Where a job stands; None if there is none of that id."""
        with self._database.reading() as connection:
            found = connection.execute(select(jobs.c.state).where(jobs.c.id == job)).scalar()
        return None if found is None else State(found)

    def wish(self, job: str, wanted: Wanted) -> JobRecord:
        """Write down what the owner wants of a job. One that is to stop stays so; one that has ended, too.

        Raises:
            NoSuchJobError: there is none of that id.
        """
        free = and_(jobs.c.id == job, jobs.c.state.not_in(sorted(ENDED)), jobs.c.wanted != Wanted.STOP)
        with self._database.writing() as connection:
            connection.execute(update(jobs).where(free).values(wanted=wanted))
            return _get(connection, job)

    def change(self, job: str, **wishes: Any) -> JobRecord:
        """Change what the owner may change (`records.WISHES`).

        Raises:
            NoSuchJobError: there is none of that id.
        """
        _only(wishes, WISHES)
        with self._database.writing() as connection:
            if wishes:
                connection.execute(update(jobs).where(jobs.c.id == job).values(wishes))
            return _get(connection, job)

    def record(self, facts: Mapping[str, Mapping[str, Any]]) -> None:
        """Write facts (`records.FACTS`) of jobs, by their ids; all or none. Unknown ids are left out."""
        with self._database.writing() as connection:
            for job, values in facts.items():
                _only(values, FACTS)
                if values:
                    connection.execute(update(jobs).where(jobs.c.id == job).values(_stored(values)))

    def move(self, job: str, to: State, reason: str, now: float, **facts: Any) -> JobRecord:
        """Bring a job to another state, with facts that become true by that.

        Sets `reason`, and `ended` when the state is final. A job that is there already gets the facts alone.

        Raises:
            NoSuchJobError: there is none of that id.
            IllegalTransitionError: the table of `states` does not allow it; nothing is changed.
        """
        _only(facts, FACTS)
        with self._database.writing() as connection:
            before = _get(connection, job, lock=True).state
            values = {"reason": reason, **facts}
            if before is not to:
                try:
                    check(job, before, to)
                except IllegalTransitionError:
                    history = [f"{past.after}" for past in _transitions(connection, job)[-LAST:]]
                    raise IllegalTransitionError(job, before, to, history) from None
                values["state"] = to
                if to in ENDED:
                    values.setdefault("ended", now)
                _note(connection, TransitionRecord(job, now, before, to, reason))
            connection.execute(update(jobs).where(jobs.c.id == job).values(_stored(values)))
            return _get(connection, job)

    def transitions(self, job: str) -> list[TransitionRecord]:
        """The states that a job has had, oldest first."""
        with self._database.reading() as connection:
            return _transitions(connection, job)

    def delete(self, job: str) -> bool:
        """Forget a job that has ended; False if it has not, is not there, or its search awaits its end."""
        is_awaited = exists().where(trials.c.job == job, trials.c.state.not_in(sorted(TRIAL_ENDS)))
        over = and_(jobs.c.id == job, jobs.c.state.in_(sorted(ENDED)), ~is_awaited)
        with self._database.writing() as connection:
            return bool(connection.execute(delete(jobs).where(over)).rowcount)


def _get(connection: Connection, job: str, lock: bool = False) -> JobRecord:
    query = select(jobs).where(jobs.c.id == job)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        raise NoSuchJobError(job)
    return _record(row)


def _transitions(connection: Connection, job: str) -> list[TransitionRecord]:
    query = select(transitions).where(transitions.c.job == job).order_by(transitions.c.number)
    return [
        TransitionRecord(
            **{
                **row._mapping,
                "before": None if row.before is None else State(row.before),
                "after": State(row.after),
            }
        )
        for row in connection.execute(query)
    ]


def _note(connection: Connection, change: TransitionRecord) -> None:
    connection.execute(
        insert(transitions).values(
            time=change.time, job=change.job, before=change.before, after=change.after, reason=change.reason
        )
    )


def _only(values: Mapping[str, Any], known: Collection[str]) -> None:
    if unknown := values.keys() - known:
        raise TypeError(f"no such fields here: {', '.join(sorted(unknown))}; there are {sorted(known)}")


_FIELDS = tuple(field.name for field in fields(JobRecord))


def _values(job: JobRecord) -> dict[str, Any]:
    return _stored({name: getattr(job, name) for name in _FIELDS})


def _stored(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of columns for values of fields."""
    stored = dict(values)
    for name in ("held", "leaving"):
        if name in stored:
            stored[name] = write_held(stored[name])
    for name in ("environment", "notes"):
        if name in stored:
            stored[name] = dict(stored[name])
    return stored


def _record(row: Row[Any]) -> JobRecord:
    values = dict(row._mapping)
    values["command"] = tuple(values["command"])
    values["allowed"] = None if values["allowed"] is None else tuple(values["allowed"])
    values["held"] = read_held(values["held"])
    values["leaving"] = read_held(values["leaving"])
    values["speedup"] = tuple((workers, speed) for workers, speed in values["speedup"])
    values["state"] = State(values["state"])
    values["wanted"] = Wanted(values["wanted"])
    return JobRecord(**values)
