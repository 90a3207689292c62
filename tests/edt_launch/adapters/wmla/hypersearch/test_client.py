"""Every request about searches, formed with `requests` as the notebooks form it, to a service that runs."""

import json
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

import playing
import serving

PROGRAM = f"""
import sys
sys.path.insert(0, {str(Path(playing.__file__).parent)!r})
from edt_launch.service import running
running.LOOP = "playing"
from edt_launch.cli.main import main
sys.argv = ["edt", "serve", *sys.argv[1:]]
main()
"""

ARGS = "--exec-start edtPyTorch --cs-datastore-meta type=fs \
                     --gpuPerWorker 1 --model-main main.py --model-dir model --debug-level debug "

STATES = ("SUBMITTED", "PENDING_CRD_SCHEDULER", "RUNNING", "FINISHED", "KILLED")


class Notebook:
    """What a notebook has in its first cells."""

    def __init__(self, service: serving.Service, folder: Path) -> None:
        self.dl_rest_url = f"{service.url}/platform/rest/deeplearning/v1"
        self.myauth = (service.get("/api/v1/")["user"], service.token)
        self.req = requests.Session()
        (folder / "model").mkdir()
        (folder / "model" / "main.py").write_text("print('hello')\n")
        self.archive = folder / "tmp.modelDir.tar"
        with tarfile.open(self.archive, "w:gz") as tar:
            tar.add(folder / "model", arcname="model")

    def ask(self, method: str, path: str = "", **more: Any) -> requests.Response:
        headers = {"Accept": "application/json"}
        url = f"{self.dl_rest_url}/hypersearch{path}"
        answer = self.req.request(method, url, headers=headers, verify=False, auth=self.myauth, **more)
        answer.close()
        return answer

    def start(self, data: dict[str, Any]) -> requests.Response:
        with self.archive.open("rb") as file:
            return self.ask("POST", data={"data": json.dumps(data)}, files={"file": file})

    def wait(self, name: str) -> dict[str, Any]:
        """As the notebook does, but not for ninety seconds at a time."""
        end = time.monotonic() + serving.PATIENCE
        found: dict[str, Any] = self.ask("GET", f"/{name}").json()
        while found["state"] in ["SUBMITTED", "RUNNING"]:
            assert time.monotonic() < end, found
            time.sleep(0.05)
            found = self.ask("GET", f"/{name}").json()
            for experiment in found["experiments"]:
                if experiment["appId"]:
                    url = f"{self.dl_rest_url}/execs/{experiment['appId']}"
                    with self.req.get(url, auth=self.myauth, verify=False) as answer:
                        assert answer.json()["state"] in STATES
        return found


@pytest.fixture
def notebook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Notebook]:
    monkeypatch.setattr(serving, "PROGRAM", PROGRAM)
    with serving.serving(tmp_path / "home", "--slots", "4") as service:
        made = Notebook(service, tmp_path)
        with made.req:
            yield made
        assert service.end() == 0


def data(**algo: Any) -> dict[str, Any]:
    return {
        "modelSpec": {"sigName": "wmla-ig", "args": ARGS},
        "algoDef": {
            "algorithm": "Random",
            "maxRunTime": -1,
            "maxJobNum": 8,
            "maxParalleJobNum": 4,
            "objectiveMetric": "loss",
            "objective": "minimize",
            **algo,
        },
        "hyperParams": [
            {
                "name": "learning_rate",
                "type": "Range",
                "dataType": "DOUBLE",
                "minDbVal": 0.001,
                "maxDbVal": 0.1,
                "minIntVal": 0,
                "maxIntVal": 0,
                "discreteDbVal": [],
                "discreteIntVal": [],
                "discreateStrVal": [],
                "step": "0.002",
            }
        ],
    }


def test_what_the_notebooks_do(notebook: Notebook) -> None:
    """Health check, launch of a Hyperband search, monitoring, and what else there is."""
    answer = notebook.ask("GET")
    assert answer.ok
    assert len(answer.json()) == 0
    params = [{"name": "ResourceName", "value": "epochs"}, {"name": "ResourceValue", "value": "81"}]
    answer = notebook.start(data(algorithm="Hyperband", hyperbandEta=3.0, algoParams=params))
    assert answer.ok, answer.content
    name = answer.json()
    assert name.startswith(f"{notebook.myauth[0]}-hpo-")
    found = notebook.wait(name)
    assert found["state"] == "FINISHED", found
    assert (found["complete"], found["failed"], found["running"], found["progress"]) == (8, 0, 0, "8/8")
    best = min(found["experiments"], key=lambda experiment: experiment["metricVal"])
    assert found["best"] == best
    values = {param["name"]: param["fixedVal"] for param in best["hyperParams"]}
    assert values == {"learning_rate": str(best["metricVal"]), "epochs": "1"}
    assert json.dumps(found, sort_keys=True, indent=4)
    for item in notebook.ask("GET").json():
        assert (item["hpoName"], item["state"]) == (name, "FINISHED")
        assert item.get("best")
    assert [item["name"] for item in notebook.ask("GET", "/algorithm").json()][:2] == ["Random", "Grid"]
    assert notebook.ask("DELETE", f"/{name}").status_code == 204
    assert notebook.ask("GET", f"/{name}").status_code == 400


def test_stop_and_restart(notebook: Notebook) -> None:
    """As dlicmd asks."""
    given = data(maxJobNum=2)
    given["modelSpec"]["args"] += "--appName waits "
    name = notebook.start(given).json()
    stop = notebook.ask("PUT", f"/{name}")
    assert (stop.status_code, stop.content) == (204, b"")
    assert notebook.ask("PUT", f"/{name}").status_code == 400
    found = notebook.wait(name)
    assert found["state"] == "STOPPED"
    assert notebook.ask("PUT", f"/{name}/restart").status_code == 204
    assert notebook.ask("DELETE", f"/{name}").status_code == 409
    assert notebook.ask("PUT", f"/{name}/force").status_code == 204
    assert notebook.wait(name)["state"] == "STOPPED"


def test_mistakes_are_told_as_text(notebook: Notebook) -> None:
    answer = notebook.start(data(maxParalleJobNum=0))
    assert not answer.ok
    assert answer.status_code == 400
    assert answer.content == (
        b"Error 400: algoDef.maxParalleJobNum: 0: expected greater than or equal to 1.\n"
    )
