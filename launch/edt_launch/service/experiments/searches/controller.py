"""The part of the service that runs searches: observes, decides, acts; again when it is woken.

It remembers nothing that is not in the database, but what is quicker not to read again.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import structlog
from pydantic import ValidationError

from edt_launch.service.app.context import Context
from edt_launch.service.bus import Topic
from edt_launch.service.db.engine import AWAY
from edt_launch.service.errors import NotFoundError, ServiceError, UnavailableError
from edt_launch.service.experiments.records import (
    ExperimentRecord,
    RunRecord,
    SearchState,
    SearchWanted,
    TrialState,
)
from edt_launch.service.experiments.searches.decide import (
    Action,
    EndSearch,
    StartSearch,
    StopTrial,
    TrialFacts,
    UpdateTrial,
    decide,
    seen,
)
from edt_launch.service.experiments.searches.plan import Next, total
from edt_launch.service.experiments.searches.service import new_run_id
from edt_launch.service.experiments.searches.spec import SearchSpec
from edt_launch.service.experiments.searches.trials import JobTrials, Trials
from edt_launch.service.files.archives.deleting import delete_file
from edt_launch.service.jobs.states import State, Wanted
from edt_launch.service.jobs.store import NoSuchJobError

log = structlog.get_logger()

LOOK = 0.5
"""Seconds between two looks whether the service ends."""

TROUBLE = 30.0
"""Seconds after which what could not be done, for want of disk space say, is tried again."""

TOPICS = (Topic.SEARCHES, Topic.JOBS)


class TroubleError(Exception):
    """Nothing can be submitted just now, whatever it is."""


class Controller:
    """Runs searches; `kinds` make jobs of other trials than `JobTrials` does, by `ExperimentRecord.kind`."""

    def __init__(self, parts: Context, kinds: Mapping[str, Trials] | None = None) -> None:
        self._parts = parts
        self._store, self._searches = parts.store, parts.store.experiments
        self._kinds = {"": JobTrials(parts), **(kinds or {})}
        self._specs: dict[str, SearchSpec] = {}
        self._retry_at: dict[str, float] = {}
        known = self._searches.search_ids()
        for path in parts.home.searches.iterdir():
            if path.name not in known:  # a service was killed just before its search was written down
                delete_file(path)

    def run(self) -> None:
        """Run the searches until the service ends. The next service goes on with them."""
        bus, stop = self._parts.bus, self._parts.stop
        seen, again_at, now = -1, None, self._parts.clock()
        while not stop.is_set():
            is_due = again_at is not None and again_at <= now
            version = bus.wait(*TOPICS, seen=seen, timeout=0 if is_due else LOOK)
            now = self._parts.clock()
            if version == seen and (again_at is None or now < again_at):
                continue
            seen = version
            try:
                again_at = self.look(now)
            except AWAY as error:
                log.warning("searches wait for the database", reason=str(error))
                again_at = now + TROUBLE

    def look(self, now: float) -> float | None:
        """Do what is to be done for all searches; returns when to look again even if nothing happens."""
        searches = self._searches.live_searches()
        trials = self._searches.trials_of([search.id for search in searches])
        for gone in self._specs.keys() - {search.id for search in searches}:
            del self._specs[gone]
        stop = self._parts.stop
        times = [self._advance(now, search, trials[search.id]) for search in searches if not stop.is_set()]
        return min((at for at in times if at is not None), default=None)

    def _advance(self, now: float, search: ExperimentRecord, trials: Sequence[RunRecord]) -> float | None:
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
            reason = f"it cannot go on: {error!r:.300}"
        try:
            self._give_up(now, search, reason)
        except Exception as error:
            log.error("a search cannot be given up", search=search.name, exc_info=error)
            return self._wait(now, search, reason)
        return None

    def _wait(self, now: float, search: ExperimentRecord, reason: str) -> float:
        """Have a search try again later. While the database is away, this fails as well."""
        self._searches.update_search(search.id, state=SearchState.WAITING, reason=reason)
        self._retry_at[search.id] = now + TROUBLE
        return now + TROUBLE

    def _give_up(self, now: float, search: ExperimentRecord, reason: str) -> None:
        """End a search of which nothing more is known than that it cannot go on; its jobs are stopped.

        A trial whose job has ended before is what its job is.
        """
        spec = self._specs.get(search.id)
        trials = self._searches.trials(search.id)
        for known in trials:
            trial = known if known.has_ended else self._seen(now, search, spec, known)
            if not trial.has_ended:
                with suppress(NoSuchJobError):
                    self._store.jobs.set_wanted(trial.job or "", Wanted.STOP)
                trial = replace(trial, state=TrialState.STOPPED, reason=reason, ended=now)
            if trial != known:
                self._searches.update_trial(trial)
        self._searches.update_search(search.id, state=SearchState.FAILED, reason=reason, ended=now)
        self._parts.changed()

    def _seen(
        self, now: float, search: ExperimentRecord, spec: SearchSpec | None, trial: RunRecord
    ) -> RunRecord:
        """A trial as its job is; as it was if that cannot be told: its search may be given up for that."""
        try:
            (facts,) = self._facts(search, spec, [trial])
            return seen(now, facts)
        except AWAY:
            raise
        except Exception as error:
            log.error("nothing is known of a trial", trial=trial.place, exc_info=error)
            return trial

    def _look(self, now: float, search: ExperimentRecord, trials: Sequence[RunRecord]) -> float | None:
        retry_at = self._retry_at.pop(search.id, now)
        if search.state is SearchState.WAITING and search.wanted is SearchWanted.RUN and now < retry_at:
            self._retry_at[search.id] = retry_at
            return retry_at
        spec = self._spec(search)
        decided = decide(now, search, spec, self._facts(search, spec, trials))
        for action in decided.actions:
            self._do(now, search, spec, action)
        return decided.again_at

    def _spec(self, search: ExperimentRecord) -> SearchSpec:
        if search.id not in self._specs:
            self._specs[search.id] = SearchSpec.model_validate(search.generator)
        return self._specs[search.id]

    def _trials(self, search: ExperimentRecord) -> Trials:
        if search.kind not in self._kinds:
            raise TroubleError(f"this service has nothing that makes jobs of {search.kind!r} trials")
        return self._kinds[search.kind]

    def _facts(
        self, search: ExperimentRecord, spec: SearchSpec | None, trials: Sequence[RunRecord]
    ) -> list[TrialFacts]:
        jobs = self._store.jobs.some([trial.job for trial in trials if trial.job and not trial.has_ended])
        facts = []
        for trial in trials:
            job, outcome = jobs.get(trial.job or ""), None
            if spec is not None and not trial.has_ended and job is not None and job.state is State.SUCCEEDED:
                outcome = self._trials(search).outcome(spec, job)
            facts.append(TrialFacts(trial, job, outcome))
        return facts

    def _do(self, now: float, search: ExperimentRecord, spec: SearchSpec, action: Action) -> None:
        match action:
            case Next() as new:
                log.info("a trial starts", search=search.name, trial=new.number, reason=new.why)
                self._submit(now, search, new.run(search, new_run_id(), now))
            case UpdateTrial(trial):
                self._searches.update_trial(trial)
            case StopTrial(trial):
                self._store.jobs.set_wanted(trial.job or "", Wanted.STOP)
                self._parts.changed()
            case StartSearch():
                started = search.started or now
                self._searches.update_search(
                    search.id, state=SearchState.RUNNING, reason="", started=started, total=total(spec)
                )
            case EndSearch(state, reason):
                log.info("a search has ended", search=search.name, state=state, reason=reason)
                self._searches.update_search(search.id, state=state, reason=reason, ended=now)

    def _submit(self, now: float, search: ExperimentRecord, trial: RunRecord) -> None:
        """Make a job of a trial; TroubleError or OSError if nothing can be submitted just now.

        The trial is written down with its job, or without one if it can have none.
        """
        user = self._store.accounts.user(search.owner)
        try:
            if user is None:
                raise NotFoundError(f"its owner, {search.owner}, is no user any more")
            self._trials(search).submit(user, search, trial)
        except UnavailableError as error:
            raise TroubleError(str(error)) from None
        except (ServiceError, ValidationError) as error:
            reason = f"it cannot be submitted: {error}"
            self._searches.add_trial(replace(trial, state=TrialState.FAILED, reason=reason, ended=now))
            self._parts.bus.notify(Topic.SEARCHES)
