import itertools
from pathlib import Path

import pytest
import torch

from edt_hvd.state.checkpoint import checkpoints
from edt_hvd.wmla import Callback
from edt_hvd.wmla.results import MiniBatch
from edt_hvd.wmla.training.engine import gathered
from small_programs import Halving, make, weights

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


class Shrinking(Callback):
    """Changes the trained weights, as one that puts their average in place does."""

    def on_train_end(self) -> None:
        assert self.model is not None
        with torch.no_grad():
            for parameter in self.model.parameters():
                parameter.mul_(0.5)


def test_a_training_that_goes_on_after_its_end_does_not_end_twice(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDT_CHECKPOINT_DIR", str(job / "checkpoint"))
    monkeypatch.setattr(checkpoints, "_serial", itertools.repeat(1))

    def train() -> tuple[bytes, bytes]:
        model, network, _ = make(user_callback=[Shrinking()])
        model.train(1, 32, 1)
        final = torch.load(job / "model" / "train" / "model_epoch_final.pth")
        return weights(network), final["fc.weight"].numpy().tobytes()

    assert train() == train()


def test_all_metrics_are_reported_those_of_a_validation_too(
    job: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: dict[str, float] = {}
    monkeypatch.setattr("edt_hvd.report", lambda **values: reported.update(values))

    def largest(output: torch.Tensor, target: torch.Tensor) -> float:
        return float(output.max())

    make(metrics=["accuracy", largest])[0].train(1, 32, 1)
    names = {"loss", "accuracy", "largest"}
    assert set(reported) == {"total_steps", *names, *(f"val_{name}" for name in names)}
