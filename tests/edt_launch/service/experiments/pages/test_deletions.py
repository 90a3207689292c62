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
    return '<button class="btn btn-primary">Delete</button>' in text


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
