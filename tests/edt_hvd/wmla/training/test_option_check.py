from typing import Any

import pytest
import torch

from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.training.option_check import check_options, differing, options_of


def optimizer(**options: Any) -> torch.optim.Optimizer:
    model = torch.nn.Linear(2, 2)
    made = torch.optim.SGD([{"params": [p]} for p in model.parameters()], lr=0.1, momentum=0.9)
    made.param_groups[1].update(options)
    return made


def found(*optimizers: torch.optim.Optimizer) -> list[str]:
    """What executors find that have these optimizers."""
    return differing([options_of(each) for each in optimizers])


def test_every_option_that_differs_in_one_executor_is_named() -> None:
    other = optimizer(lr=0.1 + 2**-55, momentum=0.5)
    assert found(*[optimizer()] * 6, other) == ["lr", "momentum"]
    assert found(optimizer(initial_lr=0.1), optimizer(initial_lr=0.2)) == ["initial_lr"]
    assert found(optimizer(), optimizer(initial_lr=0.2)) == ["initial_lr"]
    assert found(optimizer(lr=float("nan")), optimizer(lr=float("nan"))) == []


def test_executors_with_other_options_end(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = options_of(optimizer(lr=0.05))
    monkeypatch.setattr("edt_hvd.gather", lambda own: [own, theirs, theirs])
    check_options(optimizer(lr=0.05), "on_epoch_begin of epoch 3")
    with pytest.raises(
        WmlaError, match=r"after on_epoch_begin of epoch 3 .* here lr is \[0.1, 0.1\]\. .*state_dict"
    ):
        check_options(optimizer(), "on_epoch_begin of epoch 3")
