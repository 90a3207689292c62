"""What a GPU check's jobs rely on, as far as a machine without one can show it."""

import copy

import gpu_train
import torch
from torch import nn


def test_a_model_whose_weights_stay_elsewhere_computes_the_same_bits() -> None:
    torch.manual_seed(0)
    plain = gpu_train.network(width=8)
    offloaded = gpu_train.Offloaded(copy.deepcopy(plain), torch.device("cpu"))
    inputs, targets = gpu_train.samples(16).tensors
    for model in (plain, offloaded):
        for seed in range(2):
            torch.manual_seed(seed)
            nn.functional.cross_entropy(model(inputs), targets).backward()
    for mine, other in zip(offloaded.model.parameters(), plain.parameters(), strict=True):
        assert torch.equal(mine.grad, other.grad)
    for mine, other in zip(offloaded.model.buffers(), plain.buffers(), strict=True):
        assert torch.equal(mine, other)
