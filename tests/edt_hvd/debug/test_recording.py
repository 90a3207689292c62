import json

import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd import observing
from edt_hvd.debug.recording import Options, Recorder

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def record(tmp_path, monkeypatch):
    """Let a recorder with these options be this process's; returns a reader of the lines it has written."""
    recorders = []

    def record(**options):
        recorder = Recorder(Options(tmp_path, **options))
        recorders.append(recorder)
        monkeypatch.setattr(observing, "observers", lambda: (recorder,))
        return lambda kind: [
            json.loads(x) for p in tmp_path.glob(f"{kind}.*") for x in p.read_text().splitlines()
        ]

    yield record
    for recorder in recorders:
        recorder.close()


def make_state(**values):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.AdamW(model.parameters(), lr=0.1), model)
    loader = edt_hvd.ElasticDataLoader(torch.ones(12, 3), 4, micro_batch_size=2)
    return edt_hvd.TorchState(model=model, optimizer=optimizer, loader=loader, history=[1], **values)


def train(state, steps):
    state.sync()
    for step in state.loader:
        for inputs in step:
            step.backward(state.model(inputs).mean())
        state.optimizer.step()
        state.commit()
        if state.progress == steps:
            break


def test_a_change_of_one_bit_shows_where_it_is(record):
    lines = record()
    state = make_state()
    train(state, 1)
    with torch.no_grad():
        state.model[0].weight[0, 0] = torch.nextafter(state.model[0].weight[0, 0], torch.tensor(9.0))
    state.commit()
    before, after = lines("record")[1:]
    assert before["buffers"] == after["buffers"]
    assert [k for k, v in before["parameters"].items() if after["parameters"][k] != v] == ["model.0.weight"]


def test_one_step_is_traced(record):
    lines = record(traced=2)
    train(make_state(), 3)
    operators = lines("operators")
    assert {line.get("position") for line in operators} == {4, 6, None}
    names = {
        phase: [x["operator"] for x in operators if x["phase"] == phase] for phase in ("forward", "update")
    }
    assert names["forward"][0] == "data"
    assert "aten::addmm" in names["forward"]
    gradients = [x["inputs"] for x in operators if x["operator"] == "gradient"]
    assert gradients[0] == "model.0.weight"
    assert any("add" in name for name in names["update"])
    assert {x["phase"] for x in operators} == {"forward", "backward", "update"}
