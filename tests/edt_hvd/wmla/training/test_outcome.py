from pathlib import Path
from typing import Any

import torch
from torch import nn

from edt_hvd.wmla import Callback
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.training import outcome
from edt_hvd.wmla.training.hooks import Hooks


class Counting(Callback):
    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_epoch_begin(self, epoch: int) -> None:
        self.seen.append(epoch)


def program() -> Program:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    return Program(model, optimizer, nn.functional.cross_entropy, list, user_callback=(Counting(),))


def test_the_script_goes_on_with_what_the_executors_have_left(tmp_path: Path) -> None:
    trained, here = program(), program()
    trained.model(torch.ones(3, 2)).sum().backward()
    trained.optimizer.step()
    trained.optimizer.param_groups[0]["lr"] = 0.25
    model: Any = trained.model
    model[0].bias.requires_grad_(False)
    model[1].eval()
    hooks = Hooks(trained.user_callback, trained.model, trained.optimizer, 3)
    hooks.epoch_begin(2)
    outcome.save(tmp_path / "outcome.pt", trained, hooks)
    outcome.load(tmp_path / "outcome.pt", here, 3)
    assert all(
        torch.equal(value, model.state_dict()[name]) for name, value in here.model.state_dict().items()
    )
    assert [p.requires_grad for p in here.model.parameters()] == [True, False, True, True]
    assert [module.training for module in here.model.modules()] == [True, True, False]
    assert here.optimizer.param_groups[0]["lr"] == 0.25
    assert len(here.optimizer.state) == 4
    (callback,) = here.user_callback
    assert callback.seen == [2]
    assert callback.params == {"optimizer": here.optimizer, "epochs": 3}
    assert [path.name for path in tmp_path.iterdir()] == ["outcome.pt"]
