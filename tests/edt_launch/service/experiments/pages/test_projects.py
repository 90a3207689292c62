"""The lists of projects, and of what is in them."""

import re

import pytest

from browser import browser
from edt_launch.service.experiments.pages import experiments as pages
from lab import Lab
from world import World


@pytest.fixture
def lab(world: World, monkeypatch: pytest.MonkeyPatch) -> Lab:
    monkeypatch.setattr(pages, "PAGE", 2)
    return Lab(world)


def named(text: str) -> list[str]:
    return re.findall(r'<th scope="row">(?:<a [^>]*>)?<bdi>(.*?)</bdi>', text)


def link(text: str, name: str) -> str:
    (address,) = re.findall(rf'href="([^"]*)">{name}<', text)
    return str(address).replace("&amp;", "&")


def test_all_that_is_in_a_project_is_reached_from_its_page(lab: Lab) -> None:
    ann = browser(lab.world, "ann")
    for number in range(3):
        lab.experiment(name=f"experiment{number}")
        lab.definition(name=f"net{number}")
    text = ann.get(f"/experiments/projects/{lab.project}").text
    assert named(text) == ["experiment2", "experiment1", "net2", "net1"]
    text = ann.get(link(text, "More training definitions")).text
    assert named(text) == ["experiment2", "experiment1", "net0"]
    text = ann.get(link(text, "More experiments")).text
    assert named(text) == ["experiment0", "net0"]
    assert "definitions_after=" in re.findall(r'hx-get="(.*?)"', text)[0]
    text = ann.get(link(text, "Newest experiments")).text
    assert named(text) == ["experiment2", "experiment1", "net0"]
