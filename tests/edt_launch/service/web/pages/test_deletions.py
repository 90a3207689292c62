"""Deleting in pages what is in projects, and projects."""

import pytest

from browser import browser, shown_again
from lab import Lab
from world import World


@pytest.fixture
def lab(world: World) -> Lab:
    return Lab(world)


def can_be_sent(text: str) -> bool:
    """Whether a question has a button."""
    return '<button class="primary">Delete</button>' in text


def test_a_definition_is_deleted_unless_an_experiment_uses_it(lab: Lab) -> None:
    ann = browser(lab.world, "ann")
    definition = lab.definition()["id"]
    experiment = lab.experiment(definition)["id"]
    address = f"/experiments/definitions/{definition}/delete"
    project = f"/experiments/projects/{lab.project}"
    assert f'href="{address}" data-dialog' in ann.get(project).text
    text = ann.get(address).text
    assert "cannot be deleted yet, since the experiment &#39;first&#39; uses it." in text
    assert not can_be_sent(text)
    shown_again(ann.post(address), 409, "used by the experiment &#39;first&#39;", "take it out of them first")
    removed = {"name": "first", "then": f"remove:{definition}", "version": "1"}
    assert ann.post(f"/experiments/{experiment}/edit", data=removed).status_code == 303
    text = ann.get(address).text
    assert ("No experiment uses it" in text, can_be_sent(text)) == (True, True)
    assert ann.post(address).headers["location"] == project
    assert lab.world.store.definitions.get(definition) is None
    assert not lab.world.settings.paths.definition(definition).exists()
    assert ann.get(address).status_code == 404
    assert lab.world.store.audit.newest(1)[0].path == f"{address} net"


def test_an_experiment_is_deleted_when_its_runs_have_ended(lab: Lab) -> None:
    ann = browser(lab.world, "ann")
    experiment = lab.experiment(lab.definition()["id"])["id"]
    (run,) = lab.run(experiment)
    address = f"/experiments/{experiment}/delete"
    assert f'href="{address}" data-dialog' in ann.get(f"/experiments/{experiment}").text
    text = ann.get(address).text
    assert f"cannot be deleted yet, since {run['job']} has not ended." in text
    assert ("whose job stays" in text, can_be_sent(text)) == (False, False)
    shown_again(ann.post(address), 409, "has runs that have not ended", run["job"])
    lab.finish(run["job"], loss=0.5)
    text = ann.get(address).text
    assert ("its run, whose job stays" in text, can_be_sent(text)) == (True, True)
    assert ann.post(address).headers["location"] == f"/experiments/projects/{lab.project}"
    assert ann.get(f"/experiments/{experiment}").status_code == 404
    assert lab.world.store.jobs.get(run["job"]) is not None


def test_a_project_is_deleted_when_nothing_is_in_it(lab: Lab) -> None:
    ann = browser(lab.world, "ann")
    experiment, address = lab.experiment()["id"], f"/experiments/projects/{lab.project}/delete"
    assert f'href="{address}" data-dialog' in ann.get(f"/experiments/projects/{lab.project}").text
    lab.definition()
    text = ann.get(address).text
    assert "the experiment &#39;first&#39; and the training definition &#39;net&#39; are in it." in text
    assert not can_be_sent(text)
    shown_again(ann.post(address), 409, "&#39;first&#39;")
    assert ann.post(f"/experiments/{experiment}/delete").status_code == 303
    (definition,) = lab.ann.get("/definitions").json()["definitions"]
    assert ann.post(f"/experiments/definitions/{definition['id']}/delete").status_code == 303
    text = ann.get(address).text
    assert ("Nothing is in it." in text, can_be_sent(text)) == (True, True)
    assert ann.post(address).headers["location"] == "/experiments"
    assert lab.world.store.projects.get(lab.project) is None
