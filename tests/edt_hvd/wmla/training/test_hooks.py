import copy
import threading
from collections import deque
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import LambdaLR, StepLR

from edt_hvd.wmla import Callback
from edt_hvd.wmla.training.hooks import Hooks


def made(*callbacks: Any) -> tuple[Hooks, torch.optim.Optimizer]:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return Hooks(callbacks, model, optimizer, 3), optimizer


class Counting(Callback):
    """Has what callbacks count with, in attributes."""

    def __init__(self) -> None:
        self.factor: Any = np.float64(1)
        self.rates: Any = np.ones(3)
        self.weights = torch.ones(2)
        self.recent: Any = deque([0.0], maxlen=3)
        self.found: Any = None

    def on_epoch_begin(self, epoch: int) -> None:
        self.factor *= np.float64(0.5)
        self.rates *= 0.5
        self.weights[0] *= 0.5
        self.recent.append(np.float32(epoch))
        self.found = {"best": (torch.tensor(0.5, requires_grad=True) * 2, {np.int64(3)})}


def test_arrays_tensors_and_containers_of_them_are_given_to_those_that_join() -> None:
    before, after = Counting(), Counting()
    weights = after.weights
    hooks, _ = made(before)
    hooks.epoch_begin(4)
    joined, _ = made(after)
    joined.load_state_dict(hooks.state_dict())
    assert after.factor == 0.5
    assert type(after.factor) is np.float64
    assert after.rates.tolist() == [0.5, 0.5, 0.5]
    assert after.weights is weights, "a loss function may use it, too"
    assert weights.tolist() == [0.5, 1.0]
    assert after.recent == deque([0.0, 4.0], maxlen=3)
    assert after.found["best"][0].item() == 1.0
    assert after.found["best"][1] == {3}


class Own(Callback):
    def __init__(self) -> None:
        self.kind = StepLR
        self.handle = [object(), 0]

    def on_epoch_begin(self, epoch: int) -> None:
        self.handle[1] = epoch

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self.handle[1]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.handle[1] = state["epoch"]


def test_a_callback_may_have_a_state_of_its_own() -> None:
    before, after = Own(), Own()
    hooks, _ = made(before)
    hooks.epoch_begin(2)
    made(after)[0].load_state_dict(hooks.state_dict())
    assert after.handle[1] == 2


class Averaging(Callback):
    """Has an average of the weights, and objects of its own that refer to what is trained."""

    def __init__(self) -> None:
        self.average = torch.nn.Linear(2, 2)
        self.helper: Any = None

    def on_train_begin(self) -> None:
        self.helper = Helper(self)

    def on_epoch_begin(self, epoch: int) -> None:
        self.helper.count += 1
        torch.nn.init.constant_(self.average.weight, epoch)


class Helper:
    def __init__(self, callback: Averaging) -> None:
        assert callback.model is not None
        self.callback, self.model, self.weight = callback, callback.model, callback.model.weight
        self.optimizer = callback.params["optimizer"]
        self.count = 0


def test_objects_that_refer_to_what_is_trained_refer_to_that_of_their_executor() -> None:
    before, after = Averaging(), Averaging()
    hooks, _ = made(before)
    joined, optimizer = made(after)
    for each in (hooks, joined):
        each.train_begin()
    hooks.epoch_begin(5)
    joined.load_state_dict(hooks.state_dict())
    assert after.helper.count == 1
    assert after.helper.callback is after
    assert after.helper.model is after.model
    assert after.model is not None
    assert after.helper.weight is after.model.weight
    assert after.helper.optimizer is optimizer
    assert after.average.weight.tolist() == [[5.0, 5.0], [5.0, 5.0]]


class Locking(Callback):
    def __init__(self) -> None:
        self.seen: list[int] = []
        self.lock = threading.Lock()

    def on_epoch_begin(self, epoch: int) -> None:
        self.seen.append(epoch)


def test_what_cannot_be_pickled_stays_an_executors_own_and_is_named_once() -> None:
    before, after = Locking(), Locking()
    lock = after.lock
    hooks, _ = made(before)
    with pytest.warns(UserWarning, match=r"Locking\.lock cannot be pickled \(.*give the callback state_dict"):
        hooks.epoch_begin(3)
    hooks.epoch_begin(4)
    made(after)[0].load_state_dict(hooks.state_dict())
    assert after.seen == [3, 4]
    assert after.lock is lock


class Keeping(Callback):
    """Has a copy of the model once there is one to keep."""

    def __init__(self) -> None:
        self.best: Any = None
        self.scheduler: Any = None

    def on_train_begin(self) -> None:
        self.scheduler = LambdaLR(self.params["optimizer"], lambda epoch: 0.5**epoch)

    def on_epoch_end(self, epoch):  # type: ignore[no-untyped-def,override]
        self.best = copy.deepcopy(self.model)
        self.scheduler.step()


def test_objects_that_come_later_are_given_whole() -> None:
    before, after = Keeping(), Keeping()
    hooks, optimizer = made(before)
    joined, _ = made(after)
    for each in (hooks, joined):
        each.train_begin()
    scheduler = after.scheduler
    optimizer.step()
    hooks.epoch_end(0, save_model=False)
    joined.load_state_dict(hooks.state_dict())
    assert torch.equal(after.best.weight, before.best.weight)
    assert after.best is not after.model
    assert after.scheduler is scheduler
    assert scheduler.last_epoch == 1
    kept = after.best
    torch.nn.init.zeros_(before.best.weight)
    hooks.epoch_begin(1)
    joined.load_state_dict(hooks.state_dict())
    assert after.best is kept
    assert not kept.weight.any()
