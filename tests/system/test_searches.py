"""A search over a service that runs: its trials train a model."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
import requests

import serving
from world import tar

PROGRAM = """
import sys
from edt_launch.cli.main import main
sys.argv = ["edt", "serve", *sys.argv[1:]]
main()
"""

TRAINING = """
model = nn.Linear(4, 1)
optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=rate), model)
loader = edt_hvd.ElasticDataLoader(points, effective_batch_size=16, micro_batch_size=4, seed=0)
state = edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, epoch=0)


@edt_hvd.elastic
def train(state):
    while state.epoch < 3:
        for step in state.loader:
            for inputs in step:
                step.backward((model(inputs) - inputs.sum(1, keepdim=True)).square().mean())
            optimizer.step()
            state.commit()
        state.epoch += 1
    with torch.no_grad():
        loss = (model(points) - points.sum(1, keepdim=True)).square().mean()
    edt_hvd.report(loss=loss)


train(state)
"""
"""What a script does with `points` and a `rate`; its loss is what it reports."""

TRAIN = """
import json, os, sys
import torch
from torch import nn
import edt_hvd

rate = float(sys.argv[1])
assert json.loads(os.environ["EDT_PARAMETERS"]) == {"rate": rate}
edt_hvd.init()
torch.manual_seed(3)
points = torch.randn(32, 4)
"""

SPEC: dict[str, Any] = {
    "name": "rates",
    "job": {"command": ["python", "train.py", "{rate}"]},
    "parameters": {"rate": {"values": [1e-6, 0.1]}},
    "algorithm": "grid",
    "metric": "loss",
    "max_parallel": 2,
}


@pytest.mark.full
def test_trials_train_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving, "PROGRAM", PROGRAM)
    with serving.serving(tmp_path / "home", "--slots", "2") as service, requests.Session() as session:
        session.headers["Authorization"] = f"Bearer {service.token}"
        url = f"{service.url}/api/v1/searches"
        files = {"code": ("code.tar.gz", tar({"train.py": (TRAIN + TRAINING).encode()}))}
        answer = session.post(url, data={"spec": json.dumps(SPEC)}, files=files)
        assert answer.status_code == 201, answer.text
        end = time.monotonic() + 4 * serving.PATIENCE
        while (shown := session.get(f"{url}/rates").json())["state"] in ("queued", "running"):
            assert time.monotonic() < end, shown
            time.sleep(0.1)
        assert shown["state"] == "succeeded", shown
        slow, fast = (trial["metric"] for trial in shown["trials"])
        assert fast < slow / 2
        assert shown["best"]["parameters"] == {"rate": 0.1}
        assert session.delete(f"{url}/rates").status_code == 204
        assert service.get("/api/v1/jobs?all=1")["jobs"] == []
        assert service.end() == 0
