"""The states of torch's objects, taken and loaded."""

import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd.state.state_dicts import is_plain

pytestmark = pytest.mark.usefixtures("alone")


def test_what_is_trainable_is_part_of_the_state() -> None:
    model, newcomer = nn.Linear(1, 1), nn.Linear(1, 1)
    model.bias.requires_grad_(False)
    edt_hvd.TorchState(model=newcomer)._load(edt_hvd.TorchState(model=model)._tree())
    assert [p.requires_grad for p in newcomer.parameters()] == [True, False]


def test_optimizer_states_keep_their_types() -> None:
    def made() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.Linear(2, 1).double()
        return model, torch.optim.NAdam(model.parameters())

    (model, optimizer), (other, loaded) = made(), made()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    edt_hvd.TorchState(model=other, optimizer=loaded)._load(
        edt_hvd.TorchState(model=model, optimizer=optimizer)._tree()
    )
    states = zip(optimizer.state.values(), loaded.state.values(), strict=True)
    for name, mine, theirs in ((name, a[name], b[name]) for a, b in states for name in a):
        assert mine.dtype == theirs.dtype, name
        assert torch.equal(mine, theirs), name


def test_a_newcomer_takes_over_the_caches_that_it_has_in_the_same_form() -> None:
    def made(**sizes: int) -> nn.Module:
        module = nn.Linear(1, 1)
        for name, size in sizes.items():
            module.register_buffer(name, torch.full((size,), float(size)), persistent=False)
        return module

    old, newcomer = made(same=2, larger=1, missing=1), made(same=2, larger=3)
    old.same.fill_(7)
    edt_hvd.TorchState(model=newcomer)._load(edt_hvd.TorchState(model=old)._tree())
    assert {name: each.tolist() for name, each in newcomer.named_buffers()} == {
        "same": [7.0, 7.0],
        "larger": [3.0, 3.0, 3.0],
    }
    assert torch.equal(newcomer.weight, old.weight)


class Verbose(nn.Linear):
    """Says more than its tensors."""

    def get_extra_state(self) -> int:
        return 1

    def set_extra_state(self, state: int) -> None:
        assert state == 1


def test_what_a_module_does_with_its_state_is_respected() -> None:
    linear = nn.Linear(1, 1)
    twice = nn.Sequential(linear, linear)
    copying = nn.Linear(1, 1)
    copying.register_state_dict_post_hook(lambda module, state, *_: state.update(bias=state["bias"].clone()))
    found = [is_plain(module) for module in (linear, nn.BatchNorm1d(3), Verbose(1, 1), twice, copying)]
    assert found == [True, True, False, False, False]
