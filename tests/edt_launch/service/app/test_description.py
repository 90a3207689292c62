"""The interface does what its description says, whatever is asked: hundreds of requests."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from databases import sqlite_at
from edt_launch.service.db.paging import PageQuery
from edt_launch.service.experiments.searches.plan import Next
from edt_launch.service.jobs.states import State
from lab import Lab
from tiers import full
from world import World

NAMES = (
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
)


@pytest.fixture
def described(tmp_path: Path) -> World:
    """A service with jobs, a search and an experiment, whose streams end at once."""
    world = World(tmp_path / "home", sqlite_at(tmp_path / "edt.db"))
    job = world.submit(world.ann)["id"]
    world.go(job, State.STARTING, State.SUCCEEDED)
    world.files(job).launcher_log.write_text("[0] hello\n")
    world.submit(world.admin, name="queued")
    search = {"name": "mine", "metric": "loss", "parameters": {"x": {"values": [1, "a"]}}}
    answer = world.ann.post("/searches", data={"spec": json.dumps(search | {"job": {"command": ["true"]}})})
    assert answer.status_code == 201, answer.text
    (search,) = world.store.experiments.searches()
    trial = Next(0, {"x": 1}, {"x": "a"}, 0, "").run(search, "raaaaaaaa", 1.0)
    world.store.experiments.add_trial(replace(trial, metric=0.5))
    lab = Lab(world)
    experiment = lab.experiment(lab.definition()["id"])["id"]
    lab.finish(lab.run(experiment)[0]["job"], loss=0.5)
    world.context.stop.set()
    return world


@pytest.mark.parametrize("is_whole, examples", [(False, 3), full(True, 20)])
def test_the_interface_does_what_its_description_says(
    described: World, is_whole: bool, examples: int
) -> None:
    import schemathesis  # takes two seconds, which all processes that run tests would spend
    from schemathesis.checks import CHECKS, not_a_server_error

    headers = dict(described.admin.headers)
    schema = schemathesis.openapi.from_asgi("/openapi.json", described.app, headers=headers)
    checks = [not_a_server_error, *(CHECKS.get_one(name) for name in NAMES)]
    ids = [job.id for job in described.store.jobs.page().jobs]
    others = {"search_id": "mine", "project_id": "digits", **_ids(described)}
    operations = asked = 0
    for found in schema.get_all_operations():
        operation = found.ok()
        if not is_whole and operation.method != "get":
            continue  # what bodies may be takes seconds to find out
        operations += 1
        strategy = operation.as_strategy()

        @given(case=strategy, job=st.sampled_from(ids))
        @settings(max_examples=examples, database=None, suppress_health_check=list(HealthCheck))
        def ask(case: Any, job: str) -> None:
            nonlocal asked
            if "job_id" in case.path_parameters and len(case.path_parameters["job_id"]) % 2:
                case.path_parameters["job_id"] = job
            for name, known in others.items():
                if name in case.path_parameters and len(case.path_parameters[name]) % 2:
                    case.path_parameters[name] = known
            response = case.call(headers=headers)
            case.validate_response(response, checks=checks)
            asked += 1

        ask()
    assert asked >= operations >= (70 if is_whole else 30)


def _ids(world: World) -> dict[str, str]:
    """Of what there is in an experiment, by the names of parameters of paths."""
    store = world.store.experiments
    (experiment,) = store.page(None, None, None, PageQuery(9))
    (run,) = store.runs(experiment.id, None, 9)
    return {"experiment_id": experiment.id, "run_id": run.id, "definition_id": run.definition}
