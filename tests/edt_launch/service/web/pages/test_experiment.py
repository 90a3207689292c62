"""The page of an experiment that has many runs."""

import re
from dataclasses import replace

import pytest

from browser import browser
from edt_launch.service.outcomes import Outcome
from lab import Lab
from records import write_run
from world import World


@pytest.fixture
def lab(world: World) -> Lab:
    return Lab(world)


def id_(kind: str, place: int) -> str:
    """The id of a run or a job."""
    return kind + "".join("abcdefghij"[int(digit)] for digit in f"{place:08}")


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
        run = replace(one, id=id_("r", place), job=id_("j", place), name=f"run{place}", outcome=outcome)
        write_run(lab.world.store, run)
    return f"/experiments/{experiment}"


def test_all_runs_are_reached_and_summed_up(lab: Lab) -> None:
    page, ann = ended(lab, 105), browser(lab.world, "ann")
    text = ann.get(page).text
    tiles = dict(re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", text))
    assert tiles == {"Runs in total": "105", "Total running time": "1 h 45 min", "GPU-hours": "52.50"}
    assert ("run5<" in text, "run4<" in text, "★" in text) == (True, False, False)
    assert "<bdi>loss</bdi> 0.5 of jaaaaaaaa" in text
    (older,) = re.findall(r'href="(\S+)">Older runs', text)
    text = ann.get(older.replace("&amp;", "&")).text
    assert re.findall(r"<bdi>(run\d)<", text) == ["run4", "run3", "run2", "run1", "run0"]
    assert re.findall(r"<strong>(.*?)&nbsp;★", text) == ["0.5"]
    assert ("Older runs" in text, f'href="{page}?tab=runs">Newest runs' in text) == (False, True)
