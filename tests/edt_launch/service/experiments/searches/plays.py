"""Searches for tests: what is searched, and a pool that plays its trials."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.experiments.records import ExperimentRecord, RunRecord, SearchState
from edt_launch.service.experiments.searches.decide import (
    Decided,
    EndSearch,
    StartSearch,
    StopTrial,
    TrialFacts,
    TrialOutcome,
    UpdateTrial,
    decide,
)
from edt_launch.service.experiments.searches.plan import Next, total
from edt_launch.service.experiments.searches.service import record_of
from edt_launch.service.experiments.searches.spec import SearchSpec
from edt_launch.service.jobs.records import JobRecord
from edt_launch.service.jobs.states import ENDED, State, Wanted

RATE = {"min": 0.001, "max": 0.1}
UNITS = {"values": [16, 32, 64]}


def specified(algorithm: str = "random", parameters: Any = None, **fields: Any) -> SearchSpec:
    given = {"rate": RATE, "units": UNITS} if parameters is None else parameters
    limits = {"max_trials": 4, "max_parallel": 2, "metric": "loss"}
    return SearchSpec.model_validate({"algorithm": algorithm, "parameters": given, **limits, **fields})


def budgets(most: int, eta: float = 3) -> dict[str, Any]:
    """What hyperband wants to know."""
    return {"eta": eta, "budget": "epochs", "max_budget": most}


def searching(**fields: Any) -> ExperimentRecord:
    made = record_of(UserRecord("ann", False, 0.0), specified(), 100.0, id="haaaaaaaa", name="ann-1", seed=7)
    return replace(made, **fields)


def place_of(trial: RunRecord) -> int:
    assert trial.place is not None
    return trial.place


@dataclass
class Play:
    """A search whose trials a random, seeded world runs; it checks at every step what must always hold."""

    spec: SearchSpec
    search: ExperimentRecord = field(default_factory=searching)
    seed: int = 0
    fails: float = 0.0
    loss: Callable[[RunRecord], float] = lambda trial: float(str(trial.parameters["rate"]))
    now: float = 100.0
    trials: dict[int, RunRecord] = field(default_factory=dict)
    jobs: dict[int, JobRecord] = field(default_factory=dict)
    stopped: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def facts(self) -> list[TrialFacts]:
        found = []
        for number in sorted(self.trials):
            trial, job = self.trials[number], self.jobs.get(number)
            is_over = job is not None and job.state is State.SUCCEEDED
            found.append(TrialFacts(trial, job, TrialOutcome(self.loss(trial)) if is_over else None))
        return found

    def decide(self) -> Decided:
        decided = decide(self.now, self.search, self.spec, self.facts())
        assert decided == decide(self.now, self.search, self.spec, self.facts())
        for action in decided.actions:
            self.do(action)
        live = [trial for trial in self.trials.values() if not trial.has_ended]
        assert len(live) <= self.spec.max_parallel
        return decided

    def do(self, action: object) -> None:
        match action:
            case Next() as new:
                assert new.number not in self.trials
                number = new.number
                self.trials[number] = replace(new.run(self.search, f"r{number}", self.now), job=f"j{number}")
                self.jobs[number] = JobRecord(f"j{number}", "ann", ("main.py",), 1, 1, self.now)
            case UpdateTrial(trial):
                self.trials[place_of(trial)] = trial
            case StopTrial(trial):
                job = self.jobs[place_of(trial)]
                self.jobs[place_of(trial)] = replace(job, wanted=Wanted.STOP)
                self.stopped.add(place_of(trial))
            case StartSearch():
                self.search = replace(
                    self.search, state=SearchState.RUNNING, started=self.now, total=total(self.spec)
                )
            case EndSearch(state, reason):
                self.search = replace(self.search, state=state, reason=reason, ended=self.now)

    def step(self) -> None:
        """A while later: some jobs have gone on."""
        self.now += self._random.uniform(1, 30)
        for number, job in list(self.jobs.items()):
            if job.state in ENDED or self._random.random() < 0.3:
                continue
            self.jobs[number] = replace(job, state=self._next(job), ended=self.now)

    def _next(self, job: JobRecord) -> State:
        if job.wanted is Wanted.STOP:
            return State.STOPPED
        if job.state is State.QUEUED:
            return State.RUNNING
        return State.FAILED if self._random.random() < self.fails else State.SUCCEEDED

    def run(self, steps: int = 2000) -> None:
        for _ in range(steps):
            self.decide()
            if self.search.has_ended:
                return
            self.step()
        raise AssertionError("it does not end")
