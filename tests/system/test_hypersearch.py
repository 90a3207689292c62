"""A search over a service that runs: its trials are real jobs."""

import io
import json
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
import requests

import serving

PROGRAM = """
import sys
from edt_launch.cli.main import main
sys.argv = ["edt", "serve", *sys.argv[1:]]
main()
"""

MODEL = b"""
import json, os
config = json.load(open("config.json"))
assert os.environ["TRAINING_ID"].endswith("-search")
assert os.environ["JOB_STATE_DIR"] == os.environ["RESULT_DIR"]
if config["optimizer"] == "broken":
    raise SystemExit(f"trial {os.environ['SUBID']} breaks")
losses = [{"steps": step, "loss": (config["rate"] - 0.3) ** 2 + 1 / step} for step in (1, 2)]
with open(os.path.join(os.environ["RESULT_DIR"], "val_dict_list.json"), "w") as file:
    json.dump(losses, file)
"""

DEFINITION: dict[str, Any] = {
    "hpoName": "my-search",
    "modelSpec": {"args": "--exec-start PyTorch --model-main main.py --model-dir model"},
    "algoDef": {
        "algorithm": "Random",
        "maxJobNum": 2,
        "maxParalleJobNum": 2,
        "objectiveMetric": "loss",
        "objective": "minimize",
        "algoParams": [{"name": "RandomSeed", "value": "9"}],  # the first trial breaks
    },
    "hyperParams": [
        {"name": "rate", "type": "Range", "dataType": "DOUBLE", "minDbVal": 0, "maxDbVal": 1},
        {"name": "optimizer", "type": "Discrete", "dataType": "STR", "discreateStrVal": ["sgd", "broken"]},
    ],
}


def test_trials_are_real_jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "PROGRAM", PROGRAM)
    with serving.serving(tmp_path / "home", "--slots", "2") as service, requests.Session() as session:
        session.auth = (service.get("/api/v1/")["user"], service.token)
        answer = session.post(
            f"{service.url}/platform/rest/deeplearning/v1/hypersearch",
            data={"data": json.dumps(DEFINITION)},
            files={"file": ("model.modelDir.tar", archive())},
        )
        assert answer.json() == "my-search", answer.text
        shown = until(session, service, lambda shown: shown["state"] not in ("SUBMITTED", "RUNNING"))
        assert (shown["state"], shown["complete"], shown["failed"]) == ("FINISHED", 1, 1), shown
        check(shown)
        url = f"{service.url}/platform/rest/deeplearning/v1/hypersearch/my-search"
        assert session.delete(url).status_code == 204
        assert service.get("/api/v1/jobs?all=1")["jobs"] == []
        assert service.end() == 0


def check(shown: dict[str, Any]) -> None:
    """Each trial has come to what its parameters say."""
    metrics = []
    for trial in shown["experiments"]:
        values = {param["name"]: param["fixedVal"] for param in trial["hyperParams"]}
        if values["optimizer"] == "broken":
            assert (trial["state"], trial["metricVal"]) == ("FAILED", None)
        else:
            loss = (float(values["rate"]) - 0.3) ** 2 + 1 / 2
            assert (trial["state"], trial["metricVal"]) == ("FINISHED", loss)
            metrics.append(loss)
    assert shown["best"]["metricVal"] == min(metrics)
    assert len({trial["appId"] for trial in shown["experiments"]}) == len(shown["experiments"])


def until(session: requests.Session, service: serving.Service, is_so: Any) -> Any:
    url = f"{service.url}/platform/rest/deeplearning/v1/hypersearch/my-search"
    while True:
        answer = session.get(url)
        shown = answer.json()
        if is_so(shown):
            return shown
        assert service.process.poll() is None, shown
        time.sleep(0.5)


def archive() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        info = tarfile.TarInfo("model/main.py")
        info.size = len(MODEL)
        tar.addfile(info, io.BytesIO(MODEL))
    return buffer.getvalue()
