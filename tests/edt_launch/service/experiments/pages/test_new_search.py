import re
from typing import Any

import pytest

from browser import browser, shown_again
from lab import Lab
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
    assert 'name="parameter"' in client.get("/experiments/new-search").text
    answer = client.post("/experiments/new-search", data=FORM, files=CODE)
    assert answer.status_code == 303, answer.text
    found = world.store.experiments.search("find")
    assert found is not None
    assert answer.headers["location"] == f"/experiments/{found.id}"
    assert found.generator["algorithm"] == "tpe"
    ranges = {
        name: {key: value for key, value in one.items() if value not in ("", [], None)}
        for name, one in found.generator["parameters"].items()
    }
    assert ranges["rate"] == {"type": "float", "min": -4, "max": -1, "base": 10}
    assert ranges["units"]["values"] == [16, 32.5]
    assert ranges["optimizer"]["values"] == ["sgd", "<b>true", "true"]
    assert ranges["layers"] == {"type": "int", "min": 1, "max": 9, "step": 2}
    assert (found.template["max"], found.generator["max_trials"]) == (2, 5)
    assert world.store.audit.newest(1)[0].path == f"/experiments/new-search {found.id}"
    assert "there is a search" in client.post("/experiments/new-search", data=FORM, files=CODE).text


@pytest.mark.parametrize(
    "change, told",
    [
        ({"low": ["x", "", "", "1", ""]}, "rate: low: &#39;x&#39; is no number"),
        ({"max_trials": "<b>"}, "max_trials"),
    ],
)
def test_what_is_wrong_is_told_above_what_was_written(
    world: World, change: dict[str, Any], told: str
) -> None:
    answer = browser(world, "ann").post("/experiments/new-search", data=FORM | change, files=CODE)
    assert answer.status_code == 422
    assert told in answer.text
    assert "<b>" not in answer.text
    assert 'value="find"' in answer.text
    assert 'value="sgd, &lt;b&gt;true, true"' in answer.text
    assert world.store.experiments.searches() == []


@pytest.mark.parametrize("framework", ["Horovod", "edtPyTorch"])
def test_it_searches_with_a_training_definition(world: World, lab: Lab, framework: str) -> None:
    data = world.settings.data_folder / "mnist"
    data.mkdir()
    definition = lab.definition(name="<b>net", framework=framework, command=["train.py"])["id"]
    experiment = lab.experiment(definition, source="mnist", command=["train.py", "--fast"])["id"]
    client = browser(world, "ann")
    address = f"/experiments/new-search?definition={definition}"
    for page in (f"/experiments/{experiment}?tab=overview", f"/experiments/projects/{lab.project}"):
        assert f'href="{address}' in client.get(page).text
    assert 'value="train.py"' in client.get(address).text
    form = client.get(f"{address}&experiment={experiment}").text
    for told in (
        '<option value="mnist">',
        "&lt;b&gt;net",
        'value="train.py --fast"',
        'name="source" value="mnist"',
        'name="max" value="4"',
    ):
        assert told in form
    given = FORM | {"command": "train.py {rate}", "definition": definition, "source": "mnist"}
    wrong = client.post("/experiments/new-search", data=given | {"source": "nothing"})
    shown_again(wrong, 422, "&#39;nothing&#39; cannot be read", f'name="definition" value="{definition}"')
    assert client.post("/experiments/new-search", data=given).status_code == 303
    job = world.store.experiments.search("find").template  # type: ignore[union-attr]
    found = job["environment"].get("DATA_DIR") if framework == "Horovod" else job["data_dir"]
    assert found == str(data)
    assert job["framework"] == (None if framework == "Horovod" else framework)


def test_only_editors_search_with_a_training_definition(world: World, lab: Lab) -> None:
    definition = lab.definition()["id"]
    experiment = lab.experiment(definition)["id"]
    lab.join("bob", "viewer")
    client = browser(world, "bob")
    assert client.get(f"/experiments/new-search?definition={definition}").status_code == 403
    assert client.post("/experiments/new-search", data=FORM | {"definition": definition}).status_code == 403
    assert "/experiments/new-search" not in client.get(f"/experiments/{experiment}?tab=overview").text
    assert world.store.experiments.searches() == []


def test_a_form_that_is_sent_twice_starts_one_search(world: World) -> None:
    client = browser(world, "ann")
    (key,) = re.findall('name="key" value="([^"]+)"', client.get("/experiments/new-search").text)
    form = FORM | {"name": "", "key": key}
    first, second = (
        client.post("/experiments/new-search", data=form, files=CODE).headers["location"] for _ in range(2)
    )
    assert first == second
    mended = {"code": ("code.tar.gz", tar({"train.py": b"print(2)"}))}
    for change, code in (({"max_trials": "6"}, CODE), ({}, mended)):
        other = client.post("/experiments/new-search", data=form | change, files=code)
        shown_again(other, 409, "this form was sent before", first.removeprefix("/experiments/"))
        assert f'value="{key}"' not in other.text
    assert len(world.ann.get("/searches").json()["searches"]) == 1
