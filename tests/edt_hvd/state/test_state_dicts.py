"""The states of torch's objects, taken and loaded."""

from typing import Any

import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd.state.snapshot import copied
from edt_hvd.state.state_dicts import is_plain
from states import expose, take_over, tree_of

pytestmark = pytest.mark.usefixtures("alone")


def test_what_is_trainable_is_part_of_the_state() -> None:
    model, newcomer = nn.Linear(1, 1), nn.Linear(1, 1)
    model.bias.requires_grad_(False)
    take_over(edt_hvd.TorchState(model=newcomer), tree_of(edt_hvd.TorchState(model=model)))
    assert [p.requires_grad for p in newcomer.parameters()] == [True, False]


def test_parts_in_evaluation_mode_are_part_of_the_state() -> None:
    model, newcomer = (nn.Sequential(nn.BatchNorm1d(1), nn.Dropout()) for _ in range(2))
    model[0].eval()
    state = edt_hvd.TorchState(model=model)
    take_over(edt_hvd.TorchState(model=newcomer), tree_of(state))
    assert [each.training for each in newcomer.modules()] == [True, False, True]
    state.sync()
    model.train()
    state.restore()
    assert not model[0].training
    tree = tree_of(state)
    del tree["model.trainable"]["training"]  # as in older checkpoints
    take_over(edt_hvd.TorchState(model=newcomer), tree)
    assert not newcomer[0].training


class Scaled(torch.optim.SGD):
    """Wraps its state."""

    scale = 1

    def state_dict(self) -> dict[str, Any]:
        return {"inner": super().state_dict(), "scale": self.scale}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict["inner"])
        self.scale = state_dict["scale"]


class Outer:
    """Wraps an optimizer without being one."""

    def __init__(self, inner: torch.optim.Optimizer) -> None:
        self.inner, self.scale = inner, 1
        self.param_groups = inner.param_groups
        self.step = inner.step

    def state_dict(self) -> dict[str, Any]:
        return {"inner": self.inner.state_dict(), "scale": self.scale}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.inner.load_state_dict(state_dict["inner"])
        self.scale = state_dict["scale"]


class Bare(Outer, torch.optim.Optimizer):
    """One that torch has not initialized."""

    step = None  # type: ignore[assignment]


def scaled(model: nn.Module) -> Any:
    return edt_hvd.DistributedOptimizer(Scaled(model.parameters(), lr=0.1, momentum=0.9), model)


def outer(model: nn.Module, kind: type[Outer] = Outer) -> Any:
    inner = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return kind(edt_hvd.DistributedOptimizer(inner, model))


def bare(model: nn.Module) -> Any:
    return outer(model, Bare)


@pytest.mark.parametrize("make", [scaled, outer, bare])
def test_optimizers_with_a_layout_of_their_own_are_loaded_through_it(make: Any) -> None:
    models = nn.Linear(2, 1), nn.Linear(2, 1)
    optimizer, other = map(make, models)
    state, newcomer = (
        edt_hvd.TorchState(model=m, optimizer=o) for m, o in zip(models, (optimizer, other), strict=True)
    )
    state.sync()
    newcomer.sync()
    expose(state)

    def step(model: nn.Module, each: Any) -> None:
        model(torch.ones(1, 2)).sum().backward()
        each.step()
        model.zero_grad()

    step(models[0], optimizer)
    optimizer.scale, optimizer.param_groups[0]["lr"] = 4, 0.5
    state.commit()
    tree = copied(tree_of(state))
    assert "optimizer.gradients" in tree
    take_over(newcomer, tree)
    assert other.scale == 4
    step(*(models[0], optimizer))
    step(*(models[1], other))
    assert torch.equal(models[0].weight, models[1].weight)
    optimizer.scale = 8
    state.restore()  # after a step
    assert optimizer.scale == 4
    optimizer.scale = 8
    state.restore()
    assert optimizer.scale == 4


def test_optimizer_states_keep_their_types() -> None:
    def made() -> tuple[nn.Module, torch.optim.Optimizer]:
        model = nn.Linear(2, 1).double()
        return model, torch.optim.NAdam(model.parameters())

    (model, optimizer), (other, loaded) = made(), made()
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    take_over(
        edt_hvd.TorchState(model=other, optimizer=loaded),
        tree_of(edt_hvd.TorchState(model=model, optimizer=optimizer)),
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
    tree = tree_of(edt_hvd.TorchState(model=old))
    with pytest.warns(UserWarning, match=r"buffer larger, which is not persistent, has shape \[1\] .* \[3\]"):
        take_over(edt_hvd.TorchState(model=newcomer), tree)
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
