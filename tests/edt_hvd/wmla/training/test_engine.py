import itertools
from pathlib import Path

import pytest
import torch

from edt_hvd.state.checkpoint import checkpoints
from edt_hvd.wmla import Callback
from small_programs import make, weights

pytestmark = pytest.mark.usefixtures("alone")


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
