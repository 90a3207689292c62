import pytest
import torch

from edt_hvd.wmla.training.metrics import accuracy


def test_accuracy_of_pixels() -> None:
    outputs = torch.zeros(2, 3, 4, 4)
    outputs[:, 1] = 1
    target = torch.ones(2, 4, 4, dtype=torch.long)
    target[1] = 2
    assert accuracy(outputs, target).item() == 50.0


@pytest.mark.parametrize(
    "outputs,target",
    [
        (torch.zeros(4, 1), torch.zeros(4, 1)),
        (torch.zeros(4), torch.zeros(4, dtype=torch.long)),
        (torch.zeros(4, 3), torch.zeros(4, 3, dtype=torch.long)),
        (torch.zeros(0, 3), torch.zeros(0, dtype=torch.long)),
        ({"logits": torch.zeros(4, 3)}, torch.zeros(4, dtype=torch.long)),
        (torch.zeros(4, 3), None),
    ],
)
def test_what_has_no_classes_has_accuracy_0(outputs: object, target: object) -> None:
    assert accuracy(outputs, target).item() == 0.0
