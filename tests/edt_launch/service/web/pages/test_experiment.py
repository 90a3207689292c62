"""The page of an experiment that has many runs."""

import re
from dataclasses import replace

import pytest

from browser import browser
from edt_launch.service import runs
from edt_launch.service.outcomes import Outcome
from lab import Lab
from world import World


@pytest.fixture
def lab(world: World) -> Lab:
    return Lab(world)


def ended(lab: Lab, number: int, **values: float) -> str:
    """An experiment with so many ended runs; the one of place 0 is the oldest, and the best."""
    experiment = lab.experiment(lab.definition()["id"])["id"]
    (first,) = lab.run(experiment)
    lab.finish(first["job"], loss=0.5)
    store = lab.world.store.experiments
    one = store.run(first["id"])
    assert one is not None
    store.delete_run(one.id)
    for place in range(number):
        told = {name: {"last": value + place} for name, value in ({"loss": 0.5} | values).items()}
        outcome = Outcome("succeeded", 0.5, 60.0, 1, told).stored()
        run = replace(one, id=f"r{place:08}", job=f"j{place:08}", name=f"run{place}", outcome=outcome)
        assert store.add_run(run)
    return f"/experiments/{experiment}"


def test_all_runs_are_reached_and_summed_up(lab: Lab) -> None:
    page, ann = ended(lab, 105), browser(lab.world, "ann")
    text = ann.get(page).text
    tiles = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text))
    assert tiles == {"Runs in total": "105", "Total running time": "1 h 45 min", "GPU-hours": "52.50"}
    assert ("run5<" in text, "run4<" in text, "★" in text) == (True, False, False)
    assert "<bdi>loss</bdi> 0.5 of j00000000" in text
    (older,) = re.findall(r'href="(\S+)">Older runs', text)
    text = ann.get(older.replace("&amp;", "&")).text
    assert re.findall(r"<bdi>(run\d)<", text) == ["run4", "run3", "run2", "run1", "run0"]
    assert re.findall(r"<strong>(.*?)&nbsp;★", text) == ["0.5"]
    assert ("Older runs" in text, f'href="{page}?tab=runs">Newest runs' in text) == (False, True)


def test_what_is_not_summed_up_is_told(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "MOST_SUMMED", 3)
    text = browser(lab.world, "ann").get(ended(lab, 4)).text
    assert "<dt>GPU-hours of the newest 3 runs</dt><dd>1.50<" in text
    assert "the best of each value of the newest 3 runs is bold" in text
