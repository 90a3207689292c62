from pathlib import Path

import pytest
import torch

from edt_hvd.wmla.results import MiniBatch
from edt_hvd.wmla.training.engine import gathered
from small_programs import Halving, make

pytestmark = pytest.mark.usefixtures("alone")


def test_mini_batches_are_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    last, first, second = MiniBatch(3, 0.1, 100 / 3, (2.0,)), MiniBatch(8, 0.5, 0.0), MiniBatch(8, 0.25, 9.0)
    monkeypatch.setattr("edt_hvd.gather", lambda own: [own, {}, {1: second}])
    assert gathered({2: last, 0: first}) == (first, second, last)


def test_options_are_compared_after_hooks(job: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[float, str]] = []

    def compare(optimizer: torch.optim.Optimizer, when: str) -> None:
        compared.append((optimizer.param_groups[0]["lr"], when))

    monkeypatch.setattr("edt_hvd.wmla.training.engine.check_options", compare)
    make()[0].train(1, 32, 1)
    assert compared == []
    make(user_callback=[Halving()])[0].train(2, 32, 1)
    assert compared == [
        (0.1, "on_epoch_begin of epoch 0"),
        (0.1, "on_epoch_end of epoch 0"),
        (0.05, "on_epoch_begin of epoch 1"),
        (0.05, "on_epoch_end of epoch 1"),
    ]
