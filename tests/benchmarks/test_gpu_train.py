"""What a GPU check's jobs rely on, as far as a machine without one can show it."""

import copy

import gpu_train
import pytest
import shared_gpu
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


@pytest.mark.parametrize(
    "gpus, slots, device, is_shared",
    [
        (1, "2", None, True),
        (1, "1", None, False),
        (4, "4", None, False),
        (1, "4", "3", False),
        (0, "4", None, False),
    ],
)
def test_only_workers_that_share_a_gpu_count_as_hosts_of_their_own(
    monkeypatch: pytest.MonkeyPatch, gpus: int, slots: str, device: str | None, is_shared: bool
) -> None:
    for name in ("NCCL_HOSTID", "NCCL_NET", "EDT_DEVICE"):
        monkeypatch.setenv(name, "")  # to be put back
        monkeypatch.delenv(name)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setenv("EDT_MAX_NP", slots)
    if device is not None:
        monkeypatch.setenv("EDT_DEVICE", device)
    shared_gpu.separate()
    assert ("NCCL_HOSTID" in shared_gpu.os.environ) is is_shared
