"""A search, and its trials, that no loop runs."""

import json
import math
from dataclasses import replace
from typing import Any

from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.experiments.records import SearchState, TrialState
from edt_launch.service.experiments.searches.plan import Next
from edt_launch.service.experiments.searches.service import new_run_id, record_of
from edt_launch.service.experiments.searches.spec import SearchSpec
from pages import Site
from world import NOW

ID = "haaaaaaaa"
HOSTILE = '<img src=x onerror="alert(1)">\u202e'
SPEC: dict[str, Any] = {
    "algorithm": "random",
    "metric": "loss",
    "objective": "minimize",
    "parameters": {
        "rate": {"type": "float", "min": -4, "max": -1, "base": 10},
        "units": {"values": [16, 32, 64]},
        HOSTILE: {"values": ["adam", HOSTILE]},
    },
}


def a_search(site: Site, trials: int) -> None:
    """Every fifth trial has failed; the first one has a job that has reported its loss."""
    store = site.world.store
    job = site.world.submit(site.world.ann, name="find-0")["id"]
    lines = [
        {"event": "progress", "time": NOW, "step": step, "size": 1, "epoch": 0, "values": {"loss": 1 / step}}
        for step in range(1, 9)
    ]
    site.world.files(job).output.events.write_text("".join(json.dumps(line) + "\n" for line in lines))
    template = {"command": ["python", HOSTILE], "min": 1, "max": 1}
    ann, spec = UserRecord("ann", False, 0.0), SearchSpec.model_validate(SPEC)
    values = {"template": template, "total": trials, "state": SearchState.RUNNING}
    store.experiments.add(record_of(ann, spec, NOW - 100, id=ID, name=HOSTILE, **values))
    for number in range(trials):
        add_trial(site, number, job if number == 0 else None)


def add_trial(site: Site, number: int, job: str | None = None) -> None:
    has_failed = number % 5 == 4
    rate = 10 ** (-4 + 3 * (number * 7 % 20) / 20)
    parameters = {"rate": rate, "units": (16, 32, 64)[number % 3], HOSTILE: ("adam", HOSTILE)[number % 2]}
    store = site.world.store.experiments
    search = store.search(ID)
    assert search is not None
    trial = Next(number, {}, parameters, 0, "").run(search, new_run_id(), NOW)
    store.add_trial(
        replace(
            trial,
            job=job,
            state=TrialState.FAILED if has_failed else TrialState.SUCCEEDED,
            metric=None if has_failed else abs(math.log10(rate) + 2.5),
            reason=HOSTILE if has_failed else "",
        )
    )
