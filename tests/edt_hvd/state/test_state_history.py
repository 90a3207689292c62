"""The history of gradients that exact reduction needs, as a part of the state."""

import pytest
import torch
from torch import nn

import edt_hvd
from states import exact_step, history, make_state, tree_of

pytestmark = pytest.mark.usefixtures("alone")


@pytest.mark.filterwarnings("ignore:optimizer.step.. was not called")
def test_the_history_of_gradients_is_in_the_state_and_restored() -> None:
    state = make_state()
    exact_step(state, 1.0)
    state.commit()
    before = history(state)
    assert tree_of(state)["optimizer.gradients"]["exponents"].tolist() == before[0]
    exact_step(state, 2.0**40)  # the reduction is done, the step is not: a worker was lost in between
    assert history(state) != before
    state.restore()
    assert history(state) == before


def test_ring_has_no_history() -> None:
    model = nn.Linear(1, 1)
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.SGD(model.parameters()), model, reduction="ring")
    state = edt_hvd.TorchState(model=model, optimizer=optimizer)
    assert sorted(tree_of(state)) == [
        *("model", "model.caches", "model.structure", "model.trainable"),
        *("optimizer", "optimizer.structure"),
    ]
