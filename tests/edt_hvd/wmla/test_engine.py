import pytest
import torch

from edt_hvd.wmla.engine import gathered
from edt_hvd.wmla.results import MiniBatch

pytestmark = pytest.mark.usefixtures("alone")


def test_mini_batches_are_in_order_and_rounded_to_float32() -> None:
    own = {1: MiniBatch(3, 0.1, 100 / 3, (2.0,)), 0: MiniBatch(8, float("nan"), 0.0, (1e300,))}
    first, second = gathered(own, 2, 1)
    third = torch.tensor(100 / 3).item()
    assert second == MiniBatch(3, torch.tensor(0.1).item(), third, (2.0,))
    assert first.samples == 8
    assert first.loss != first.loss
    assert first.metrics == (float("inf"),)
