from typing import Any

import pytest

from browser import browser
from world import World, tar

FORM: dict[str, Any] = {
    "name": "find",
    "command": "python train.py --rate {rate}",
    "metric": "loss",
    "objective": "maximize",
    "algorithm": "tpe",
    "max_trials": "5",
    "max_parallel": "2",
    "max": "2",
    "parameter": ["rate", "units", "optimizer", "layers", ""],
    "kind": ["powers", "values", "values", "int", "values"],
    "values": ["", "16, 32.5", "sgd, <b>true, true", "", ""],
    "low": ["-4", "", "", "1", ""],
    "high": ["-1", "", "", "9", ""],
    "step": ["", "", "", "2", ""],
}
CODE = {"code": ("code.tar.gz", tar({"train.py": b"print()"}))}


def test_a_search_is_started_from_a_form(world: World) -> None:
    client = browser(world, "ann")
    assert 'name="parameter"' in client.get("/searches/new").text
    answer = client.post("/searches/new", data=FORM, files=CODE)
    assert answer.status_code == 303, answer.text
    found = world.store.searches.get("find")
    assert found is not None
    assert answer.headers["location"] == f"/searches/{found.id}"
    assert found.definition["algorithm"] == "tpe"
    ranges = {
        name: {key: value for key, value in one.items() if value not in ("", [], None)}
        for name, one in found.definition["parameters"].items()
    }
    assert ranges["rate"] == {"type": "float", "min": -4, "max": -1, "base": 10}
    assert ranges["units"]["values"] == [16, 32.5]
    assert ranges["optimizer"]["values"] == ["sgd", "<b>true", "true"]
    assert ranges["layers"] == {"type": "int", "min": 1, "max": 9, "step": 2}
    assert (found.template["max"], found.definition["max_trials"]) == (2, 5)
    assert world.store.audit.newest(1)[0].path == f"/searches/new {found.id}"
    assert "there is a search" in client.post("/searches/new", data=FORM, files=CODE).text


def test_it_takes_the_files_of_a_job(world: World) -> None:
    job = world.submit(world.ann, name="digits", max=3)["id"]
    client = browser(world, "ann")
    form = client.get(f"/searches/new?job={job}").text
    assert f'value="{job}"' in form
    assert 'value="python train.py"' in form
    assert browser(world, "bob").get(f"/searches/new?job={job}").status_code == 403
    assert client.post("/searches/new", data=FORM | {"code_of": job}).status_code == 303


@pytest.mark.parametrize(
    "change, told",
    [
        ({"metric": ""}, "metric"),
        ({"low": ["x", "", "", "1", ""]}, "rate: low: &#39;x&#39; is no number"),
        ({"values": ["", "", "a", "", ""]}, "units: there are no values"),
        ({"command": "python '"}, "close its quotes"),
        ({"command": "python other.py"}, "other.py"),
        ({"algorithm": "grid"}, "step is missing"),
        ({"low": ["-4"]}, "do not belong together"),
        ({"max_trials": "<b>"}, "max_trials"),
    ],
)
def test_what_is_wrong_is_told_above_what_was_written(
    world: World, change: dict[str, Any], told: str
) -> None:
    answer = browser(world, "ann").post("/searches/new", data=FORM | change, files=CODE)
    assert answer.status_code == 422
    assert told in answer.text
    assert "<b>" not in answer.text
    if "low" not in change or len(change["low"]) > 1:
        assert 'value="find"' in answer.text
        assert 'value="sgd, &lt;b&gt;true, true"' in answer.text or "values" in change
    assert world.store.searches.all() == []
