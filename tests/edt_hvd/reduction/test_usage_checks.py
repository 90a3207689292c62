"""Mistakes of a script that would train another model than it says."""

import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import clip_grad, clip_grad_norm_, clip_grad_value_

import edt_hvd
from edt_hvd.errors import GradientError
from edt_hvd.reduction import usage_checks

pytestmark = pytest.mark.usefixtures("alone")

Divide = Callable[[torch.Tensor], torch.Tensor]

LEFT_ALONE = "step.backward.. computes gradients of 2 parameters, and no DistributedOptimizer has one"


@pytest.fixture
def model() -> nn.Linear:
    torch.manual_seed(0)
    return nn.Linear(3, 1)


def loader(steps: int = 2, micro_batches: int = 4) -> edt_hvd.ElasticDataLoader:
    data = torch.randn(steps * micro_batches * 2, 3, generator=torch.Generator().manual_seed(1))
    return edt_hvd.ElasticDataLoader(list(data), 2 * micro_batches, 2, shuffle=False)


def loss_of(model: nn.Module, data: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = model(data).square().mean()
    return found


def sgd(model: nn.Module) -> torch.optim.SGD:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, divide: Divide = lambda loss: loss) -> None:
    """Two steps."""
    for step in loader():
        for data in step:
            step.backward(divide(loss_of(model, data)))
        optimizer.step()


def steps(model: nn.Module, count: int = 2) -> Iterator[edt_hvd.Step]:
    """Steps after whose loop the gradients are there."""
    for step in loader(count):
        for data in step:
            step.backward(loss_of(model, data))
        yield step


# Optimizers that are not distributed.


def test_an_optimizer_that_is_not_distributed_is_refused(model: nn.Linear) -> None:
    optimizer = sgd(model)
    before = model.weight.clone()
    with pytest.warns(UserWarning, match=LEFT_ALONE) as caught:
        next(steps(model))
    assert caught[0].filename == __file__
    with pytest.raises(GradientError, match=r"SGD.step\(\) on gradients from the loop over a step"):
        optimizer.step()
    assert torch.equal(model.weight, before)


def test_one_optimizer_of_two_that_is_not_distributed_is_refused(model: nn.Linear) -> None:
    other = nn.Linear(1, 1)
    distributed = edt_hvd.DistributedOptimizer(sgd(model), model)
    forgotten = torch.optim.Adam(other.parameters())
    for step in loader():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for data in step:
                step.backward(other(model(data)).mean())
        distributed.step()
        with pytest.raises(GradientError, match=r"edt_hvd.DistributedOptimizer\(Adam\(...\), model\)"):
            forgotten.step()
        break


def test_an_optimizer_with_a_loop_of_its_own_may_step(model: nn.Linear) -> None:
    probe = nn.Linear(3, 1)
    optimizer, own = edt_hvd.DistributedOptimizer(sgd(model), model), sgd(probe)
    for _ in steps(model):
        loss_of(probe, torch.ones(1, 3)).backward()  # type: ignore[no-untyped-call]
        own.step()
        own.zero_grad()
        optimizer.step()


# Steps that are left out.


def test_steps_without_an_optimizers_step_are_named_once(model: nn.Linear) -> None:
    optimizer = edt_hvd.DistributedOptimizer(sgd(model), model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for step in loader(4):
            for data in step:
                step.backward(loss_of(model, data))
    assert len(caught) == 1
    optimizer.step()


# Clipping.


def test_one_of_two_optimizers_may_step_now_and_then(model: nn.Linear) -> None:
    critic = nn.Linear(3, 1)
    first = edt_hvd.DistributedOptimizer(sgd(model), model)
    second = edt_hvd.DistributedOptimizer(sgd(critic), critic)
    for step in loader(4):
        for data in step:
            step.backward(loss_of(model, data) + loss_of(critic, data))
        second.step()
        if step.index % 2:
            first.step()


@pytest.mark.parametrize("clip", [clip_grad_norm_, clip_grad_value_])
def test_clipping_in_the_loop_over_a_step_is_refused(model: nn.Linear, clip: Callable[..., object]) -> None:
    optimizer, foreign = edt_hvd.DistributedOptimizer(sgd(model), model), nn.Parameter(torch.zeros(1))
    foreign.grad = torch.ones(1)
    for step in loader():
        for data in step:
            step.backward(loss_of(model, data))
            with pytest.raises(GradientError, match=rf"{clip.__name__}\(\) inside the loop over a step's"):
                clip(model.parameters(), 0.1)
            clip(foreign, 0.1)  # no optimizer here has it
        clip(model.parameters(), 0.01)
        assert model.weight.grad.norm() <= 0.02
        optimizer.step()


# Losses that are divided.


def bare(parameters: object, max_norm: float) -> float:
    """Stand for a clipping function of another torch."""
    return max_norm


@functools.wraps(bare)
def decorated(*args: Any) -> float:
    """Keep the function under a name of its own."""
    return bare(*args) if args else 0.0


def kept_as(inner: Callable[..., float]) -> Callable[..., float]:
    """Keep a function in a cell, as torch does, under another name."""

    @functools.wraps(inner)
    def wrapper(*args: Any) -> float:
        return inner(*args)

    return wrapper


@pytest.mark.parametrize("clip", [bare, decorated, kept_as(bare)])
def test_clipping_is_checked_however_torch_decorates_it(
    clip: Callable[..., float], model: nn.Linear, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clip_grad, clip.__name__, clip, raising=False)
    usage_checks._wrap(clip)
    optimizer, found = edt_hvd.DistributedOptimizer(sgd(model), model), getattr(clip_grad, clip.__name__)
    with usage_checks.in_loop(), pytest.raises(GradientError, match="inside the loop over a step"):
        found(model.parameters(), 0.5)
    assert found(optimizer.param_groups[0]["params"], 0.5) == 0.5


@pytest.mark.parametrize("divide", [lambda loss: loss / 4, lambda loss: loss * 0.25])
def test_a_loss_divided_by_the_number_of_micro_batches_is_named(model: nn.Linear, divide: Divide) -> None:
    optimizer = edt_hvd.DistributedOptimizer(sgd(model), model)
    with pytest.warns(UserWarning, match="a loss that is divided by 4, the number of the step's") as caught:
        train(model, optimizer, divide)
    assert all(warning.filename == __file__ for warning in caught)


@pytest.mark.parametrize("divide", [lambda loss: loss / 3, lambda loss: loss * 4])
def test_other_factors_are_the_scripts_own(model: nn.Linear, divide: Divide) -> None:
    train(model, edt_hvd.DistributedOptimizer(sgd(model), model), divide)


# Loops that are left.


def test_a_step_after_a_loop_that_was_left_says_so(model: nn.Linear) -> None:
    optimizer = edt_hvd.DistributedOptimizer(sgd(model), model)
    for step in loader():
        for data in step:
            step.backward(loss_of(model, data))
            break
        with pytest.raises(GradientError, match="that was left before its end, by break for instance"):
            optimizer.step()
        break
    for _ in steps(model):
        optimizer.step()


def test_a_plain_backward_in_the_loop_is_refused(model: nn.Linear) -> None:
    optimizer = edt_hvd.DistributedOptimizer(sgd(model), model)
    for step in loader():
        for data in step:
            with pytest.raises(GradientError, match=r"loss.backward\(\) inside the loop over a step's"):
                loss_of(model, data).backward()  # type: ignore[no-untyped-call]
            break
        break
    del optimizer


def test_a_plain_backward_and_an_optimizer_that_is_not_distributed_are_refused(model: nn.Linear) -> None:
    optimizer = sgd(model)
    loop = iter(loader())
    for data in next(loop):
        loss_of(model, data).backward()  # type: ignore[no-untyped-call]
    optimizer.step()
    for data in next(loop):
        loss_of(model, data).backward()  # type: ignore[no-untyped-call]
    with pytest.raises(GradientError, match=r"SGD.step\(\) on gradients from the loop over a step"):
        optimizer.step()
