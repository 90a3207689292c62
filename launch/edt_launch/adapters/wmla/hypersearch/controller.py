"""The part of the service that runs searches: looks at what there is, decides, acts; again when it is woken.

It remembers nothing that is not in the database, but what is quicker not to read again.
"""

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import structlog
from pydantic import ValidationError

from edt_launch.adapters.wmla.hypersearch.decide import (
    Action,
    Begun,
    End,
    Note,
    Start,
    Stop,
    Submit,
    TrialFacts,
    decide,
    seen,
)
from edt_launch.adapters.wmla.hypersearch.definition import Definition
from edt_launch.adapters.wmla.hypersearch.metric import read
from edt_launch.adapters.wmla.submission import submitting
from edt_launch.adapters.wmla.submission.request import ExecRequest
from edt_launch.service.api.context import Context
from edt_launch.service.bus import Topic
from edt_launch.service.database.engine import AWAY
from edt_launch.service.database.jobs import NoSuchJobError
from edt_launch.service.database.records import JobRecord
from edt_launch.service.database.search_records import (
    SearchRecord,
    SearchState,
    TrialRecord,
    TrialState,
    Wish,
)
from edt_launch.service.deleting import delete_file
from edt_launch.service.errors import NotFoundError, ServiceError, UnavailableError
from edt_launch.service.states import State, Wanted

log = structlog.get_logger()

LOOK = 0.5
"""Seconds between two looks whether the service ends."""

TROUBLE = 30.0
"""Seconds after which what could not be done, for want of disk space say, is tried again."""

CONFIG = "config.json"
"""Where a trial's program finds its hyperparameters, in its work dir."""

TOPICS = (Topic.SEARCHES, Topic.JOBS)


class TroubleError(Exception):
    """Nothing can be submitted just now, whatever it is."""


class Controller:
    """Runs searches.

    Args:
        context: the service's parts.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._store = context.store
        self._definitions: dict[str, Definition] = {}
        self._retry_at: dict[str, float] = {}
        self._remove_strays()

    def _remove_strays(self) -> None:
        """Delete archives that no search has: a service was killed just before one was written down."""
        known = self._store.searches.ids()
        for path in self._context.home.searches.iterdir():
            if path.name not in known:
                delete_file(path)

    def run(self) -> None:
        """Run the searches until the service ends. The next service goes on with them."""
        bus, stop = self._context.bus, self._context.stop
        seen, again_at, now = -1, None, self._context.clock()
        while not stop.is_set():
            is_due = again_at is not None and again_at <= now
            version = bus.wait(*TOPICS, seen=seen, timeout=0 if is_due else LOOK)
            now = self._context.clock()
            if version == seen and (again_at is None or now < again_at):
                continue
            seen = version
            try:
                again_at = self.look(now)
            except AWAY as error:
                log.warning("searches wait for the database", reason=str(error))
                again_at = now + TROUBLE

    def look(self, now: float) -> float | None:
        """Do what is to be done for all searches.

        Returns:
            When to look again even if nothing happens.
        """
        searches = self._store.searches.live()
        trials = self._store.searches.trials_of([search.id for search in searches])
        for gone in self._definitions.keys() - {search.id for search in searches}:
            del self._definitions[gone]
        stop = self._context.stop
        times = [self._advance(now, search, trials[search.id]) for search in searches if not stop.is_set()]
        return min((at for at in times if at is not None), default=None)

    def _advance(self, now: float, search: SearchRecord, trials: Sequence[TrialRecord]) -> float | None:
        try:
            return self._look(now, search, trials)
        except (TroubleError, OSError) as error:
            log.warning("a trial cannot be submitted", search=search.name, reason=str(error))
            return self._wait(now, search, str(error))
        except AWAY as error:
            log.warning("a search waits for the database", search=search.name, reason=str(error))
            return self._wait(now, search, "the service's database did not answer")
        except Exception as error:
            log.error("a search cannot go on", search=search.name, exc_info=error)
            return self._try_to_give_up(now, search, f"it cannot go on: {error!r:.300}")

    def _wait(self, now: float, search: SearchRecord, reason: str) -> float:
        """Have a search try again later. While the database is away, this fails as well."""
        self._store.searches.update(search.id, state=SearchState.RECOVERPEND, reason=reason)
        self._retry_at[search.id] = now + TROUBLE
        return now + TROUBLE

    def _try_to_give_up(self, now: float, search: SearchRecord, reason: str) -> float | None:
        try:
            self._give_up(now, search, reason)
        except Exception as error:
            log.error("a search cannot be given up", search=search.name, exc_info=error)
            return self._wait(now, search, reason)
        return None

    def _give_up(self, now: float, search: SearchRecord, reason: str) -> None:
        """End a search of which nothing more is known than that it cannot go on; its jobs are stopped.

        A trial whose job has ended before is what its job is.
        """
        definition = self._definitions.get(search.id)
        trials = self._store.searches.trials(search.id)
        for known in trials:
            trial = known if known.has_ended else self._seen(now, definition, known)
            if not trial.has_ended:
                with suppress(NoSuchJobError):
                    self._store.jobs.wish(trial.job or "", Wanted.STOP)
                trial = replace(trial, state=TrialState.KILLED, reason=reason, ended=now)
            if trial != known:
                self._store.searches.update_trial(trial)
        self._store.searches.update(search.id, state=SearchState.FAILED, reason=reason, ended=now)
        self._context.changed()

    def _seen(self, now: float, definition: Definition | None, trial: TrialRecord) -> TrialRecord:
        """A trial as its job is; as it was if that cannot be told: its search may be given up for that."""
        try:
            (facts,) = self._facts(definition, [trial])
            return seen(now, facts)
        except AWAY:
            raise
        except Exception as error:
            log.error("nothing is known of a trial", trial=trial.number, exc_info=error)
            return trial

    def _look(self, now: float, search: SearchRecord, trials: Sequence[TrialRecord]) -> float | None:
        retry_at = self._retry_at.pop(search.id, now)
        if search.state is SearchState.RECOVERPEND and search.wanted is Wish.RUN and now < retry_at:
            self._retry_at[search.id] = retry_at
            return retry_at
        definition = self._definition(search)
        known = [self._with_job(search, trial) for trial in trials]
        decided = decide(now, search, definition, self._facts(definition, known))
        for action in decided.actions:
            self._do(now, search, definition, action)
        return decided.again_at

    def _definition(self, search: SearchRecord) -> Definition:
        if search.id not in self._definitions:
            self._definitions[search.id] = Definition.model_validate(search.definition)
        return self._definitions[search.id]

    def _facts(self, definition: Definition | None, trials: Sequence[TrialRecord]) -> list[TrialFacts]:
        jobs = self._store.jobs.some([trial.job for trial in trials if trial.job and not trial.has_ended])
        return [self._fact(definition, trial, jobs.get(trial.job or "")) for trial in trials]

    def _fact(self, definition: Definition | None, trial: TrialRecord, job: JobRecord | None) -> TrialFacts:
        if definition is None or trial.has_ended or job is None or job.state is not State.SUCCEEDED:
            return TrialFacts(trial, job)
        algo = definition.algo_def
        folder = self._context.home.job(job.id).root
        return TrialFacts(trial, job, read(folder, algo.objective_metric, algo.objective))

    def _do(self, now: float, search: SearchRecord, definition: Definition, action: Action) -> None:
        searches = self._store.searches
        match action:
            case Start(new):
                log.info("a trial starts", search=search.name, trial=new.number, reason=new.why)
                trial = TrialRecord(search.id, new.number, new.point, new.parameters, new.budget, now)
                searches.add_trial(trial)
                self._submit(now, search, definition, trial)
            case Submit(trial):
                self._submit(now, search, definition, trial)
            case Note(trial):
                searches.update_trial(trial)
            case Stop(trial):
                self._store.jobs.wish(trial.job or "", Wanted.STOP)
                self._context.changed()
            case Begun():
                searches.update(
                    search.id, state=SearchState.RUNNING, reason="", started=search.started or now
                )
            case End(state, reason):
                log.info("a search has ended", search=search.name, state=state, reason=reason)
                searches.update(search.id, state=state, reason=reason, ended=now)

    def _submit(self, now: float, search: SearchRecord, definition: Definition, trial: TrialRecord) -> None:
        """Make a job of a trial. What is wrong with the trial is written down with it.

        Raises:
            TroubleError: nothing can be submitted just now.
            OSError: likewise.
        """
        user = self._store.accounts.user(search.owner)
        try:
            if user is None:
                raise NotFoundError(f"its owner, {search.owner}, is no user any more")
            with self._context.home.search(search.id).open("rb") as code:
                config = json.dumps(trial.parameters, indent=2, allow_nan=False).encode()
                record = submitting.submit(
                    self._context, user, _request(search, definition, trial), code, {CONFIG: config}
                )
        except UnavailableError as error:
            raise TroubleError(str(error)) from None
        except (ServiceError, ValidationError) as error:
            reason = f"it cannot be submitted: {error}"
            failed = replace(trial, state=TrialState.FAILED, reason=reason, ended=now)
            self._store.searches.update_trial(failed)
            self._context.bus.notify(Topic.SEARCHES)
        else:
            self._store.searches.update_trial(
                replace(trial, exec=record.id, driver=record.driver, job=record.job)
            )

    def _with_job(self, search: SearchRecord, trial: TrialRecord) -> TrialRecord:
        """A trial, with the job that was made of it just before the service was killed, if one was."""
        if trial.job is not None or trial.has_ended:
            return trial
        wanted = environment(search, trial).items()
        for job in self._store.jobs.page(owner=search.owner, limit=None).jobs:
            if job.submitted >= trial.created and wanted <= job.environment.items():
                names = self._store.execs.of([job.id]).get(job.id)
                driver = None if names is None else names.driver
                found = replace(trial, exec=job.id if names is None else names.id, driver=driver, job=job.id)
                self._store.searches.update_trial(found)
                return found
        return trial


def environment(search: SearchRecord, trial: TrialRecord) -> dict[str, str]:
    """The variables by which a trial's program knows the search that it is a part of."""
    return {"TRAINING_ID": search.name, "SUBID": str(trial.number)}


def _request(search: SearchRecord, definition: Definition, trial: TrialRecord) -> ExecRequest:
    """What a trial runs; the script may be given words after `--`, so ours come first."""
    ours = [f"--msd-env {name}={value}" for name, value in environment(search, trial).items()]
    spec = definition.model_spec
    return ExecRequest(
        args=" ".join([*ours, spec.args]), group=spec.sig_name or None, file_name=search.file_name
    )
