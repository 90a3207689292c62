from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import nn

from edt_hvd.wmla.errors import WmlaError
from edt_hvd.wmla.program import Program
from edt_hvd.wmla.train_call import check_same, describe
from edt_hvd.wmla.train_config import TrainConfig

CONFIG = TrainConfig(3, 8, 32, 4, seed=2**62 + 1)


def program(width: int = 3) -> Program:
    model = nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.25)
    return Program(model, optimizer, nn.functional.cross_entropy, lambda: None)


def freeze(one: Program) -> None:
    next(one.model.parameters()).requires_grad_(False)


def set_rate(one: Program) -> None:
    one.optimizer.param_groups[0]["lr"] = 0.125


def test_what_scripts_choose_by_device_does_not_matter() -> None:
    here = program()
    nn.init.zeros_(here.model[0].weight)  # type: ignore[index,arg-type]
    here.model.half()
    here.optimizer = torch.optim.SGD(here.model.parameters(), lr=0.5, momentum=0.25, foreach=True)
    here.optimizer.param_groups[0]["fused"] = True
    config = replace(CONFIG, num_dataloader_threads=2)
    check_same(describe(program(), CONFIG), describe(here, config), 1)


@pytest.mark.parametrize(
    "change, said",
    [
        (freeze, "parameter 0.weight is (3, 2), frozen here, (3, 2) in the driver"),
        (set_rate, "the optimizer's lr is [0.125] here, [0.5] in the driver"),
    ],
)
def test_an_executor_that_trains_something_else_says_what(
    change: Callable[[Program], None], said: str
) -> None:
    here = program()
    change(here)
    with pytest.raises(WmlaError, match=r"call 2 of train\(\) differs in this executor: ") as caught:
        check_same(describe(program(), CONFIG), describe(here, CONFIG), 2)
    assert said in str(caught.value)
