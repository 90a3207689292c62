from dataclasses import replace
from typing import Any

import pytest

from browser import browser
from edt_launch.service.accounts.records import UserRecord
from edt_launch.service.experiments import service
from edt_launch.service.experiments.records import SearchState, TrialState
from edt_launch.service.experiments.searches.plan import Next
from edt_launch.service.experiments.searches.service import record_of
from edt_launch.service.experiments.searches.spec import SearchSpec
from world import NOW, World

SPEC: dict[str, Any] = {
    "algorithm": "random",
    "metric": "loss",
    "objective": "minimize",
    "parameters": {
        "rate": {"type": "float", "min": -4, "max": -1, "base": 10},
        "<i>": {"values": ["<b>", "adam"]},
    },
    "max_trials": 3,
}
ID = "haaaaaaaa"


def search(world: World, **fields: Any) -> None:
    template = {"command": ["python", "train.py", "--rate", "{rate}"], "min": 1, "max": 2}
    values = {"template": template, "total": 3, "state": SearchState.RUNNING, "started": NOW - 90}
    values |= {"id": ID, "name": "<b>find"} | fields
    spec = SearchSpec.model_validate(SPEC)
    ann = UserRecord("ann", False, 0.0)
    made = record_of(ann, spec, NOW - 100, **values)
    world.store.experiments.add(made)
    job = world.submit(world.ann, name="find-0")["id"]
    ended = [
        (TrialState.SUCCEEDED, 0.5, ""),
        (TrialState.SUCCEEDED, 0.25, ""),
        (TrialState.FAILED, None, "<u>nan"),
    ]
    for number, (state, metric, reason) in enumerate(ended):
        parameters = {"rate": 0.1 / (number + 1), "<i>": "<b>"}
        trial = Next(number, {}, parameters, 0, "").run(made, f"r{made.id[2:]}{'abc'[number]}", NOW)
        its = job if number == 1 else None
        world.store.experiments.add_trial(replace(trial, job=its, state=state, metric=metric, reason=reason))


def test_searches_are_listed_with_their_best(world: World) -> None:
    assert "edt search create" in browser(world, "ann").get("/experiments").text
    search(world)
    page = browser(world, "ann").get("/experiments").text
    assert "&lt;b&gt;find" in page
    assert "<td>3 of 3</td><td>1</td><td>0.25</td>" in page
    assert "<td>1m 30s</td>" in page
    others = browser(world, "bob").get("/experiments").text
    assert "<td>3 of 3</td><td>1</td><td>-</td>" in others
    assert "bob has none" in browser(world, "bob").get("/experiments?owner=bob").text


def test_the_list_is_made_once_for_those_who_see_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    search(world)
    made, listed = list[str](), service.listed
    monkeypatch.setattr(service, "listed", lambda *given: made.append(given[1].name) or listed(*given))
    for name in ("ann", "bob", "ann", "admin"):
        text = browser(world, name).get("/experiments", headers={"HX-Request": "true"}).text
        assert ("<td>0.25</td>" in text) is (name != "bob")
    assert made == ["ann", "bob", "admin"]


def test_a_search_and_its_tabs(world: World) -> None:
    search(world)
    client = browser(world, "ann")
    progress = client.get(f"/experiments/{ID}").text
    assert progress.index("0.25") < progress.index("<td>0.5</td>")  # best first
    assert "&lt;u&gt;nan" in progress
    assert "<caption>3 trials, best first</caption>" in progress
    assert f'data-url="/api/v1/searches/{ID}" data-metric="loss" data-objective="minimize"' in progress
    assert 'data-axis="p.rate" data-name="rate">' in progress
    assert 'data-axis="p.&lt;i&gt;" data-name="&lt;i&gt;" data-texts>' in progress
    best = client.get(f"/experiments/{ID}?tab=best").text
    assert "data-axis" not in best
    given = client.get(f"/experiments/{ID}?tab=input").text
    for told in ("10 to the power of -4 to -1", "&lt;b&gt;, adam", "train.py --rate &#39;{rate}&#39;"):
        assert told in given
    for page in (progress, best, given):
        assert "<b>" not in page
        assert "<u>" not in page


def test_what_others_see(world: World) -> None:
    search(world, reason="a private reason")
    page = browser(world, "bob").get(f"/experiments/{ID}").text
    assert "are for ann and administrators" in page
    for private in ("0.25", "private reason", "--rate", "Stop"):
        assert private not in page
    assert browser(world, "bob").get("/experiments/hbbbbbbbb").status_code == 404


@pytest.mark.parametrize("action", ["stop", "restart", "run-best", "delete"])
def test_nobody_touches_anothers_search(world: World, action: str) -> None:
    search(world)
    bob = browser(world, "bob")
    assert bob.get(f"/experiments/{ID}/{action}").status_code == 403
    assert bob.post(f"/experiments/{ID}/{action}").status_code == 403


def test_what_can_be_done_is_asked_about_and_done(world: World) -> None:
    search(world)
    client = browser(world, "ann")
    assert "&lt;b&gt;find" in client.get(f"/experiments/{ID}/stop").text
    assert client.get(f"/experiments/{ID}/delete").status_code == 409
    answer = client.post(f"/experiments/{ID}/run-best")
    job = world.store.jobs.get(answer.headers["location"].removeprefix("/jobs/"))
    assert job.name == "<b>find-best"
    assert client.post(f"/experiments/{ID}/stop").headers["location"] == f"/experiments/{ID}"
    assert "/stop" not in client.get(f"/experiments/{ID}").text
    world.store.experiments.update_search(ID, state=SearchState.STOPPED, ended=NOW)
    assert "stopped are tried again" in client.get(f"/experiments/{ID}/restart").text
    client.post(f"/experiments/{ID}/restart")
    found = world.store.experiments.search(ID)
    assert found is not None
    assert found.state is SearchState.QUEUED
