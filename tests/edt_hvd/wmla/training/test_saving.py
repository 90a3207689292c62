from pathlib import Path

import torch

from edt_hvd.wmla.training import saving


def trained() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    model(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    return model, optimizer


def test_where_models_are() -> None:
    assert saving.model_dir({"SAVED_MODEL_DIR": "/m", "RESULT_DIR": "/r"}) == Path("/m")
    assert saving.model_dir({"RESULT_DIR": "/r"}) == Path("/r/model")
    assert saving.model_dir({}) == Path("model")


def test_a_model_and_its_optimizer_are_saved(tmp_path: Path) -> None:
    model, optimizer = trained()
    saving.save(tmp_path, saving.FINAL, model, optimizer)
    found = torch.load(saving.model_path(tmp_path, saving.FINAL))
    assert found.keys() == model.state_dict().keys()
    assert torch.equal(found["0.weight"], model.state_dict()["0.weight"])
    state = torch.load(saving.optimizer_path(tmp_path, saving.FINAL))
    assert state["state"].keys() == optimizer.state_dict()["state"].keys()


def test_files_are_plain_state_dicts_and_no_larger_than_they_need_be(tmp_path: Path) -> None:
    model = torch.nn.Linear(2, 2, bias=False)
    large = torch.zeros(1000, 1000)
    model.weight = torch.nn.Parameter(large[:2, :2])
    saving.save(tmp_path, 3, model, torch.optim.SGD(model.parameters(), lr=0.1))
    path = tmp_path / "train" / "model_epoch_3.pth"
    assert path.stat().st_size < 10_000
    assert list(torch.load(path, weights_only=True)) == ["weight"]
    assert (tmp_path / "train" / "model_epoch_3_optimizer_state.pth").exists()
    assert len(list((tmp_path / "train").iterdir())) == 2
