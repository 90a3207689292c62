from pathlib import Path

import torch

from edt_hvd.wmla.training import saving


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
