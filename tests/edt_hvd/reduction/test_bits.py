"""Comparing tensors by their bits."""

import pytest
import torch

from edt_hvd.reduction.bits import fingerprint


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_a_fingerprint_tells_other_bits_and_other_places(dtype: torch.dtype) -> None:
    values = torch.linspace(-2, 2, 1001).to(dtype)
    values[0], values[1] = 0.0, float("nan")
    others = [values.clone() for _ in range(4)]
    others[0][0] = -0.0
    others[1][[0, 7]] = others[1][[7, 0]]
    others[2][500] += 1
    others[2][501] -= 1
    prints = {fingerprint(each) for each in others[:3]}
    assert len(prints) == 3
    assert fingerprint(values) == fingerprint(others[3]) not in prints
