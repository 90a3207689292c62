"""Searches for tests: their definitions, and a pool that plays their trials."""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from edt_launch.adapters.wmla.hypersearch.decide import (
    Begun,
    Decided,
    End,
    Note,
    Start,
    Stop,
    Submit,
    TrialFacts,
    decide,
)
from edt_launch.adapters.wmla.hypersearch.definition import Definition
from edt_launch.adapters.wmla.hypersearch.metric import Outcome
from edt_launch.service.database.records import JobRecord
from edt_launch.service.database.search_records import SearchRecord, SearchState, TrialRecord
from edt_launch.service.states import ENDED, State, Wanted

RATE = {"name": "rate", "type": "Range", "dataType": "DOUBLE", "minDbVal": 0.001, "maxDbVal": 0.1}
UNITS = {"name": "units", "type": "Discrete", "dataType": "INT", "discreteIntVal": [16, 32, 64]}


def content(algorithm: str = "Random", *params: Mapping[str, Any], **algo: Any) -> dict[str, Any]:
    """A search's definition, as clients send it."""
    return {
        "modelSpec": {"sigName": "dli-sig", "args": "--exec-start edtPyTorch --model-main main.py "},
        "algoDef": {
            "algorithm": algorithm,
            "maxRunTime": -1,
            "maxJobNum": 4,
            "maxParalleJobNum": 2,
            "objectiveMetric": "loss",
            "objective": "minimize",
            **algo,
        },
        "hyperParams": list(params or (RATE, UNITS)),
    }


def defined(algorithm: str = "Random", *params: Mapping[str, Any], **algo: Any) -> Definition:
    return Definition.model_validate(content(algorithm, *params, **algo))


def budgets(resource: int, eta: float = 3) -> dict[str, Any]:
    """What Hyperband wants to know."""
    return {
        "hyperbandEta": eta,
        "algoParams": [
            {"name": "ResourceName", "value": "epochs"},
            {"name": "ResourceValue", "value": str(resource)},
        ],
    }


def searching(**fields: Any) -> SearchRecord:
    known = SearchRecord("haaaaaaaa", "ann-hpo-1", "ann", {}, "m.modelDir.tar", 7, 100.0)
    return replace(known, **fields)


@dataclass
class Play:
    """A search whose trials a random, seeded world runs; it checks at every step what must always hold."""

    definition: Definition
    search: SearchRecord = field(default_factory=searching)
    seed: int = 0
    fails: float = 0.0
    loss: Callable[[TrialRecord], float] = lambda trial: float(str(trial.parameters["rate"]))
    now: float = 100.0
    trials: dict[int, TrialRecord] = field(default_factory=dict)
    jobs: dict[int, JobRecord] = field(default_factory=dict)
    stopped: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def facts(self) -> list[TrialFacts]:
        found = []
        for number in sorted(self.trials):
            trial, job = self.trials[number], self.jobs.get(number)
            is_over = job is not None and job.state is State.SUCCEEDED
            found.append(TrialFacts(trial, job, Outcome(self.loss(trial)) if is_over else None))
        return found

    def decide(self) -> Decided:
        decided = decide(self.now, self.search, self.definition, self.facts())
        assert decided == decide(self.now, self.search, self.definition, self.facts())
        for action in decided.actions:
            self.do(action)
        live = [trial for trial in self.trials.values() if not trial.has_ended]
        assert len(live) <= self.definition.algo_def.max_at_once
        return decided

    def do(self, action: object) -> None:
        match action:
            case Start(new):
                assert new.number not in self.trials
                trial = TrialRecord(
                    self.search.id, new.number, new.point, new.parameters, new.budget, self.now
                )
                self._submit(trial)
            case Submit(trial):
                self._submit(trial)
            case Note(trial):
                self.trials[trial.number] = trial
            case Stop(trial):
                job = self.jobs[trial.number]
                self.jobs[trial.number] = replace(job, wanted=Wanted.STOP)
                self.stopped.add(trial.number)
            case Begun():
                self.search = replace(self.search, state=SearchState.RUNNING, started=self.now)
            case End(state, reason):
                self.search = replace(self.search, state=state, reason=reason, ended=self.now)

    def _submit(self, trial: TrialRecord) -> None:
        number = trial.number
        self.trials[number] = replace(
            trial, exec=f"exec-{number}", driver=f"driver-{number}", job=f"j{number}"
        )
        self.jobs[number] = JobRecord(f"j{number}", "ann", ("main.py",), 1, 1, self.now)

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
