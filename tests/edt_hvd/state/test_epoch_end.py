"""A resize, and the rollback point of a commit, wait where the loader has nothing left of an epoch."""

from collections.abc import Iterator

import pytest
import torch
from torch import nn

import edt_hvd
from edt_hvd.errors import ResizeInterrupt
from edt_hvd.reduction import agreement
from edt_hvd.state import torch_state

pytestmark = pytest.mark.usefixtures("alone")


def make_state(loaders: int = 1) -> edt_hvd.TorchState:
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), model)
    named = {
        f"loader{number}": edt_hvd.ElasticDataLoader([torch.ones(2)] * 6, 2, 2) for number in range(loaders)
    }
    state = edt_hvd.TorchState(model=model, optimizer=optimizer, epoch=0, **named)
    state.sync()
    return state


def train(state: edt_hvd.TorchState, loader: edt_hvd.ElasticDataLoader) -> Iterator[int]:
    """Train for an epoch; gives the number of each step after its commit."""
    for step in loader:
        for inputs in step:
            step.backward(state.model(inputs).square().mean())
        state.optimizer.step()
        state.commit()
        yield step.index


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """A new world is announced once the list has something in it."""
    found: list[bool] = []
    monkeypatch.setattr(torch_state, "FixedWorld", bytes)  # the one here is none
    monkeypatch.setattr(agreement, "stop_agreed", lambda: bool(found))
    return found


def test_in_the_middle_of_an_epoch_a_resize_is_carried_out_at_the_commit(announced: list[bool]) -> None:
    state = make_state()
    loop = train(state, state.loader0)
    next(loop)
    announced.append(True)
    with pytest.raises(ResizeInterrupt):
        next(loop)
    assert state.loader0.position == 2


def test_at_the_end_of_an_epoch_it_waits_for_the_next(announced: list[bool]) -> None:
    state = make_state()
    seen = []
    for index in train(state, state.loader0):
        seen.append(index)
        if index == 1:
            announced.append(True)
    assert seen == [0, 1, 2]
    state.epoch += 1
    with pytest.raises(ResizeInterrupt):
        next(train(state, state.loader0))
    assert (state.epoch, state.loader0.epoch, state.loader0.position) == (1, 1, 0)


def test_of_two_loaders_both_have_to_go_on(announced: list[bool]) -> None:
    state = make_state(loaders=2)
    first, second = train(state, state.loader0), train(state, state.loader1)
    for _ in range(2):
        next(first)
        next(second)
    announced.append(True)
    next(first)
    next(second)
    assert list(first) == []
    third = train(state, state.loader0)
    assert next(third) == 0
    assert list(second) == []
    with pytest.raises(ResizeInterrupt):
        next(train(state, state.loader1))


def test_a_loss_between_two_epochs_goes_back_into_the_epoch() -> None:
    state = make_state()
    state._rollback.snapshots.taken(0.0, 1e9)  # too costly to be taken again, until it is needed
    loop = train(state, state.loader0)
    next(loop)
    next(loop)
    weight, progress = state.model.weight.clone(), state.progress
    assert list(loop) == [2]
    state.epoch += 1
    state.restore()
    assert torch.equal(state.model.weight, weight)
    assert (state.epoch, state.loader0.epoch, state.loader0.position) == (0, 0, 2)
    assert state.progress == progress
    assert list(train(state, state.loader0)) == [2]


def test_the_summary_of_an_epoch_survives_a_rollback() -> None:
    state = make_state()
    loop = train(state, state.loader0)
    next(loop)
    summary = state.loader0.summary
    assert summary[:3] == (0, 1, 2)
    next(loop)
    summary = state.loader0.summary
    assert summary.samples == 4
    state.model.weight.data.add_(1)
    state._rollback.point = None
    state.restore()
    assert state.loader0.summary == summary
    list(train(state, state.loader0))
    assert state.loader0.summary[:3] == (0, 3, 6)
