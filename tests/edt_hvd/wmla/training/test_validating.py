from typing import Any

import pytest
import torch
from torch.utils.data import TensorDataset

from edt_hvd.wmla.program import Program
from edt_hvd.wmla.results import MiniBatch
from edt_hvd.wmla.train_config import TrainConfig
from edt_hvd.wmla.training.validating import validation
from small_programs import datasets

pytestmark = pytest.mark.usefixtures("alone")

LABELS = torch.tensor([0, 1, 1, 0, 1])
CONFIG = TrainConfig(epochs=1, batch_size=2, effective_batch_size=4, max_workers=2)


class Fixed(torch.nn.Module):
    """Says what it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        return scores


def validated(**options: Any) -> MiniBatch:
    model = Fixed()
    right = torch.nn.functional.one_hot(LABELS, 2).float()
    right[4] = torch.tensor([1.0, 0.0])
    program = Program(
        model, torch.optim.SGD(model.parameters(), lr=0.1), torch.nn.CrossEntropyLoss(), datasets, **options
    )
    found = validation(program, TensorDataset(right, LABELS), CONFIG)
    assert found is not None
    with torch.no_grad():
        first = found(0)
        assert found(1) == first
    return first


def correct(outputs: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (outputs.argmax(1) == target).double().mean()


def whole(model: Any, test_iter: Any, fn_args: Any) -> Any:
    """A test in the manner of programs: it divides by the batches that it has counted."""
    assert fn_args is None
    assert len(test_iter) == 3
    assert len(test_iter.dataset) == 5
    total, count = 0.0, 0
    for inputs, labels in test_iter:
        total += model.get_loss_function()(model(inputs), labels)
        count += 1
    assert count == 3
    return total / count


def test_the_engines_own_validation_weights_by_samples() -> None:
    found = validated(metrics=(correct,))
    assert (found.samples, found.accuracy, found.metrics) == (5, 80.0, (0.8,))
    loss = torch.nn.functional.cross_entropy(torch.eye(2)[[0, 1, 1, 0, 0]], LABELS)
    assert found.loss == pytest.approx(float(loss))


def test_the_programs_own_test_sees_all_batches_at_once() -> None:
    found = validated(fn_test=whole, metrics=(correct,))
    assert (found.samples, found.accuracy) == (5, 80.0)
    assert found.metrics == (pytest.approx(0.8),)
    losses = torch.nn.functional.cross_entropy(torch.eye(2), torch.tensor([0, 0]), reduction="none")
    right, wrong = losses.tolist()
    assert found.loss == pytest.approx((right + right + wrong) / 3)
