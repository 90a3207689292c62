"""An experiment over a service that runs: its runs train a model, and are compared."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import serving
from test_hypersearch import PROGRAM

TRAIN = """
import os, sys
import torch
from torch import nn
import edt_hvd

rate = float(sys.argv[sys.argv.index("--rate") + 1])
edt_hvd.init()
torch.manual_seed(3)
points = torch.load(os.path.join(os.environ["DATA_DIR"], "points.pt"))
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


class Terminal:
    """The command line of a user of a service, in a folder."""

    def __init__(self, service: serving.Service, folder: Path) -> None:
        self._folder = folder
        self._environment = os.environ | {"EDT_URL": service.url, "EDT_TOKEN": service.token}

    def __call__(self, *words: str) -> str:
        command = [sys.executable, "-m", "edt_launch.cli", *words]
        ended = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    def compared(self) -> Any:
        return json.loads(self("experiment", "compare", "first", "--json"))


@pytest.mark.full
def test_two_runs_train_and_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.setattr(serving, "PROGRAM", PROGRAM)
    code = tmp_path / "code"
    code.mkdir()
    (code / "train.py").write_text(TRAIN + TRAINING)
    with serving.serving(tmp_path / "home", "--slots", "2") as service:
        torch.manual_seed(5)
        torch.save(torch.randn(32, 4), tmp_path / "points.pt")
        edt = Terminal(service, code)
        source = edt("data", "put", "points", str(tmp_path / "points.pt"))
        edt("project", "create", "lines")
        edt("experiment", "create", "first", "--project", "lines", "--source", source)
        edt("experiment", "add", "first", "net", "--max", "2", "--", "python", "train.py")
        slow, fast = (
            edt("experiment", "run", "first", "--", "python", "train.py", "--rate", rate)
            for rate in ("1e-6", "0.1")
        )
        shown = edt.compared()
        while any(run["state"] != "succeeded" for run in shown["runs"]):
            assert not any(run["state"] == "failed" for run in shown["runs"]), edt("why", fast)
            shown = edt.compared()
        newest, oldest = shown["runs"]
        assert (newest["job"], oldest["job"]) == (fast, slow)
        assert newest["values"]["loss"]["last"] < oldest["values"]["loss"]["last"] / 2
        assert shown["metrics"][0] == {"name": "loss", "objective": "minimize", "best": newest["id"]}
        assert shown["parameters"] == [{"name": "--rate", "values": ["0.1", "1e-6"]}]
        assert all(run["hours"] > 0 for run in shown["runs"])
        again = edt("experiment", "run", "first", "--again", newest["id"])
        lines = edt("logs", "-f", again)
        assert lines
        assert edt("logs", again, "--since", "1h") == lines
        assert edt("logs", again, "--since", "2000-01-01", "--until", "2000-01-02") == ""
        assert [run["job"] for run in edt.compared()["runs"]] == [again, fast, slow]
