"""The quick walk finds what torch's finds."""

import torch
from torch import nn

from edt_hvd.state.module_walk import buffers_of, parameters_of, tensors_of


class Shared(nn.Module):
    """One layer twice, a tied weight, a buffer twice, and one that is None."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3, affine=False))
        self.again = self.first
        self.tied = nn.Linear(3, 3, bias=False)
        self.tied.weight = self.first[0].weight
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("alias", self.mean)
        self.register_buffer("nothing", None)
        self.register_buffer("mask", torch.zeros(2), persistent=False)


def check(module: nn.Module) -> None:
    assert list(map(id, dict.fromkeys(parameters_of(module)))) == list(map(id, module.parameters()))
    expected = {name: id(buffer) for name, buffer in module.named_buffers()}
    persistent, others = buffers_of(module, persistent=True), buffers_of(module, persistent=False)
    assert {name: id(buffer) for name, buffer in (persistent | others).items()} == expected
    assert persistent.keys() <= module.state_dict().keys()
    assert others.keys().isdisjoint(module.state_dict().keys())


def test_it_follows_every_change() -> None:
    module = Shared()
    check(module)
    module.extra = nn.BatchNorm1d(2)
    check(module)
    module.first.append(nn.Linear(3, 2))
    check(module)
    module.mean = torch.ones(3)
    module.tied.bias = nn.Parameter(torch.zeros(3))
    check(module)
    module.double()  # replaces buffers without telling anybody
    check(module)


def test_all_that_a_state_dict_has() -> None:
    module = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), Shared())
    del module[2].again, module[2].alias
    expected = {name: tensor.data_ptr() for name, tensor in module.state_dict().items()}
    assert {name: tensor.data_ptr() for name, tensor in tensors_of(module).items()} == expected
