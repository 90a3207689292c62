"""A state with something of everything, and what tests of states do with it."""

from typing import Any

import torch
from torch import nn

import edt_hvd


def tree_of(state: edt_hvd.TorchState) -> dict[str, Any]:
    """The full tree of a state's values, as others receive it."""
    return state._contents.tree()


def take_over(state: edt_hvd.TorchState, tree: dict[str, Any]) -> None:
    """Load a tree that another worker has sent."""
    state._contents.take_over(tree, is_first=True)


class Counter:
    """Anything with torch's protocol."""

    def __init__(self) -> None:
        self.count = 0

    def state_dict(self) -> dict[str, Any]:
        return {"count": self.count}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.count = state_dict["count"]


def make_state(**values: Any) -> edt_hvd.TorchState:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = edt_hvd.DistributedOptimizer(torch.optim.AdamW(model.parameters(), lr=0.1), model)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    state = edt_hvd.TorchState(
        model=model,
        optimizer=optimizer,
        scheduler=scheduler,
        epoch=0,
        history=[1],
        counter=Counter(),
        **values,
    )
    state.sync()
    expose(state)
    return state


def expose(state: edt_hvd.TorchState) -> None:
    """Have full copies taken, as where collectives are called between a step and its commit."""
    state._rollback.exposure.note(True, is_end=False)


def train_step(state: edt_hvd.TorchState) -> None:
    state.model(torch.randn(5, 3)).square().sum().backward()
    state.optimizer.step()
    state.optimizer.zero_grad()


def picture(state: edt_hvd.TorchState) -> dict[str, Any]:
    """All that a restored state must agree in."""
    adam = state.optimizer.state_dict()["state"]
    return {
        "model": {key: value.clone() for key, value in state.model.state_dict().items()},
        "groups": [{name: group[name] for name in ("lr", "betas")} for group in state.optimizer.param_groups],
        "adam": {key: {name: value.clone() for name, value in one.items()} for key, one in adam.items()},
        "scheduler": dict(state.scheduler.state_dict()),
        "values": (state.epoch, list(state.history), state.counter.count),
    }


def change_values(state: edt_hvd.TorchState) -> None:
    state.scheduler.step()
    state.epoch += 1
    state.history.append(2)
    state.counter.count += 1


def assert_same(ours: Any, theirs: Any) -> None:
    torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def exact_step(state: edt_hvd.TorchState, size: float) -> None:
    """A step of a loader, whose gradients are about `size`."""
    for step in edt_hvd.ElasticDataLoader(torch.randn(4, 3), 4, 2):
        for inputs in step:
            step.backward(state.model(inputs).square().sum() * size)


def history(state: edt_hvd.TorchState) -> tuple[list[int], int]:
    found = state.optimizer._edt_reducer.state_dict()
    return found["exponents"].tolist(), found["passes"]
