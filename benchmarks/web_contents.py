"""What `web_pages.py` fills a service with besides jobs: experiments, their runs, a search."""

import json
import time
from dataclasses import replace
from typing import Any

EXPERIMENTS, RUNS, TRIALS = 200, 100, 1000
STEPS = 2000
"""Reports of a run."""

PROJECT, EXPERIMENT, SEARCH = "paaaaaaaa", "xaaaaaaaa", "haaaaaaaa"

PATHS = {
    "experiments": "/experiments",
    "project": f"/experiments/projects/{PROJECT}",
    "runs": f"/experiments/{EXPERIMENT}",
    "comparison": f"/experiments/{EXPERIMENT}?tab=compare",
    "curves": f"/api/v1/series?name=loss&jobs={','.join(f'jr{chr(97 + n)}aaaaaa' for n in range(20))}",
    "progress": f"/experiments/{SEARCH}?tab=progress",
    "best": f"/experiments/{SEARCH}?tab=best",
    "trials": f"/api/v1/searches/{SEARCH}",
}
"""Names of pages, and of what their pictures load."""


def fill(context: Any) -> None:
    """A project with these experiments, the first of which has these runs, and a search with these trials."""
    _experiments(context)
    _search(context.store)


def _experiments(context: Any) -> None:
    from edt_launch.service.experiments.records import (
        DefinitionRecord,
        Distribution,
        ExperimentRecord,
        ProjectRecord,
        RunRecord,
        TrainingRecord,
    )
    from edt_launch.service.jobs.records import JobRecord
    from edt_launch.service.jobs.states import State

    store, now = context.store, time.time()
    command = ("python", "train.py")
    store.projects.add(ProjectRecord(PROJECT, "digits", "", "ann", now, now, "ann"))
    definition = DefinitionRecord("daaaaaaaa", PROJECT, "net", "", "Horovod", command, "ann", now, now, "ann")
    store.definitions.add(definition)
    for number in range(EXPERIMENTS):
        id_ = f"x{_letters(number)}aaaaaa"
        experiment = ExperimentRecord(
            id_, PROJECT, f"experiment {number}", "", "", (), "", "", "ann", now, now, "ann"
        )
        training = TrainingRecord(id_, 0, definition.id, Distribution.ELASTIC, 1, 1, 4)
        store.experiments.add(experiment, [training])
    for number in range(RUNS):
        id_ = f"jr{_letters(number)[::-1]}aaaaa"
        spec = {"command": [*command, "--rate", str(number)], "min": 1, "max": 4, "environment": {}}
        job = JobRecord(id_, "ann", tuple(spec["command"]), 1, 4, now - 9000, name=f"run {number}")
        run = RunRecord(f"r{id_[1:]}", EXPERIMENT, definition.id, "net", 0, "", id_, "ann", now, spec)
        store.jobs.add(job, run)
        for state in (State.STARTING, State.RUNNING, State.SUCCEEDED)[: 2 if number % 10 == 0 else 3]:
            store.jobs.move(id_, state, "for the benchmark", now - 8000 + number)
        events = context.home.job(id_).output.events
        events.parent.mkdir(parents=True)
        events.write_text("".join(_report(now, number, step) for step in range(1, STEPS + 1)))


def _report(now: float, number: int, step: int) -> str:
    values = {"loss": (1 + number) / step, "accuracy": 1 - 1 / step}
    told = {
        "event": "progress",
        "time": now - 8000 + step,
        "step": step,
        "epoch": 0,
        "size": 4,
        "values": values,
    }
    return json.dumps(told) + "\n"


def _search(store: Any) -> None:
    from edt_launch.service.accounts.records import UserRecord
    from edt_launch.service.experiments.records import TrialState
    from edt_launch.service.experiments.searches.plan import Next
    from edt_launch.service.experiments.searches.service import new_run_id, record_of
    from edt_launch.service.experiments.searches.spec import SearchSpec

    now = time.time()
    parameters = {
        name: {"type": "float", "min": 0, "max": 1} for name in ("rate", "decay", "momentum", "dropout")
    }
    definition = {"metric": "loss", "objective": "minimize", "algorithm": "random", "parameters": parameters}
    template = {"command": ["python", "train.py"], "min": 1, "max": 1}
    ann, spec = UserRecord("ann", False, now), SearchSpec.model_validate(definition)
    search = record_of(ann, spec, now, id=SEARCH, name="rates", seed=7, template=template, total=TRIALS)
    store.experiments.add(search)
    for number in range(TRIALS):
        point = {name: (number * place % 997) / 997 for place, name in enumerate(parameters, start=3)}
        trial = Next(number, {}, point, 0, "").run(search, new_run_id(), now)
        ended = replace(trial, state=TrialState.SUCCEEDED, metric=sum(point.values()))
        store.experiments.add_trial(ended)


def _letters(number: int) -> str:
    """Two letters, other ones for each number below 676."""
    return chr(97 + number // 26) + chr(97 + number % 26)
