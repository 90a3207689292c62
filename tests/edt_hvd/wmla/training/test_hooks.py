from collections import deque
from datetime import UTC, datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import StepLR

from edt_hvd.wmla import Callback
from edt_hvd.wmla.training.hooks import Hooks


class Scheduling(Callback):
    """Does not call its base's constructor."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def on_train_begin(self) -> None:
        self.scheduler = StepLR(self.params["optimizer"], 1, 0.5)
        self.note = {"best": 0.25}
        self.handle = object()

    def on_epoch_begin(self, epoch: int) -> None:
        self.seen.append(epoch)

    def on_epoch_end(self, epoch):  # type: ignore[no-untyped-def,override]
        self.scheduler.step()


class Saving:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_epoch_end(self, epoch: int, save_model: bool = False) -> None:
        self.calls.append((epoch, save_model))


class SavingByName:
    def __init__(self) -> None:
        self.calls: list[Any] = []

    def on_epoch_end(self, epoch: int, **named: Any) -> None:
        self.calls.append((epoch, named))


def made(*callbacks: Any) -> tuple[Hooks, torch.optim.Optimizer]:
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    return Hooks(callbacks, model, optimizer, 3), optimizer


def test_callbacks_are_given_what_is_trained() -> None:
    callback = Scheduling()
    _, optimizer = made(callback)
    assert callback.params == {"optimizer": optimizer, "epochs": 3}
    assert isinstance(callback.model, torch.nn.Linear)
    assert Callback.params == {}
    assert Callback.model is None


def test_save_model_is_passed_to_those_that_take_it() -> None:
    saving, by_name, scheduling = Saving(), SavingByName(), Scheduling()
    hooks, optimizer = made(saving, by_name, scheduling)
    hooks.train_begin()
    optimizer.step()
    hooks.epoch_begin(0)
    hooks.epoch_end(0, save_model=True)
    hooks.train_end()
    assert saving.calls == [(0, True)]
    assert by_name.calls == [(0, {"save_model": True})]
    assert scheduling.seen == [0]
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_one_that_joins_goes_on_with_the_callbacks_of_the_others() -> None:
    before, after = Scheduling(), Scheduling()
    hooks, optimizer = made(before)
    hooks.train_begin()
    for epoch in range(2):
        hooks.epoch_begin(epoch)
        optimizer.step()
        hooks.epoch_end(epoch, save_model=False)
    joined, _ = made(after)
    joined.train_begin()
    handle = after.handle
    joined.load_state_dict(hooks.state_dict())
    assert after.seen == [0, 1]
    assert after.note == {"best": 0.25}
    assert after.scheduler.last_epoch == 2
    assert after.handle is handle


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


class Stage(Enum):
    FIRST, SECOND = 1, 2


class Staging(Callback):
    def __init__(self) -> None:
        self.stage, self.seen = Stage.FIRST, [Stage.FIRST]
        self.path, self.until = Path("here"), datetime(2000, 1, 1, tzinfo=UTC)

    def on_epoch_begin(self, epoch: int) -> None:
        self.stage, self.seen = Stage.SECOND, [Stage.SECOND]
        self.path, self.until = Path("there"), self.until + timedelta(1)


def test_members_of_enumerations_paths_and_times_are_given_to_those_that_join() -> None:
    before, after = Staging(), Staging()
    hooks, _ = made(before)
    hooks.epoch_begin(0)
    made(after)[0].load_state_dict(hooks.state_dict())
    assert after.stage is after.seen[0] is Stage.SECOND
    assert (after.path, after.until) == (Path("there"), datetime(2000, 1, 2, tzinfo=UTC))


class Viewing(Callback):
    def on_train_begin(self) -> None:
        assert self.model is not None
        self.tensor = self.model.weight.data[1:]
        self.array = self.model.weight.detach().numpy()[1:]
        self.listed = [self.model.bias.data]
        self.objects = np.array([object()])


def test_paths_in_the_folder_of_an_executor_are_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    states = []
    for name in ("one", "another"):
        monkeypatch.setenv("LOG_DIR", f"/job/log/{name}")
        callback = Saving()
        vars(callback).update(path=f"/job/log/{name}/notes", at=Path("/job/log", name), text=name)
        hooks, _ = made(callback)
        states.append((hooks, callback))
    (first, _), (joined, callback) = states
    monkeypatch.setenv("LOG_DIR", "/job/log/one")
    first.train_begin()
    joined.load_state_dict(first.state_dict())
    assert vars(callback)["path"] == "/job/log/another/notes"
    assert vars(callback)["at"] == Path("/job/log/another")
    assert vars(callback)["text"] == "one"


def test_what_is_trained_does_not_go_back_with_callbacks_that_look_at_it() -> None:
    callback = Viewing()
    hooks, _ = made(callback)
    hooks.train_begin()
    state = hooks.state_dict()
    assert isinstance(callback.model, torch.nn.Linear)
    torch.nn.init.zeros_(callback.model.weight)
    hooks.load_state_dict(state)
    assert not callback.model.weight.any()
    assert not callback.tensor.any()
    assert callback.listed[0].data_ptr() == callback.model.bias.data_ptr()


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


SCRIPT = """
from torch import nn, optim
from edt_hvd.wmla import Callback

model = nn.Linear(2, 2)
optimizer = optim.SGD(model.parameters(), lr=1.0)
scheduler = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
warmup = optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
count = 0
place = "here"
lost = None

def adjust():
    [warmup for _ in range(1)][0].step()

def around():
    hidden = 0
    class Inner(Callback):
        def on_epoch_begin(self, epoch):
            nonlocal hidden
            hidden += 1
            self.seen = hidden
    return Inner()

class Outer(Callback):
    def on_epoch_end(self, epoch):
        global count, unknown
        count += 1
        assert place
        def later():
            scheduler.step()
        later()
        adjust()
        optimizer.zero_grad()
        model(nn.Parameter(model.weight))
    @staticmethod
    def on_train_end():
        return count, scheduler.last_epoch, warmup.last_epoch, place

callbacks = [Outer(), around()]
"""


def script() -> tuple[Hooks, dict[str, Any]]:
    names: dict[str, Any] = {"__name__": "a_script"}
    exec(SCRIPT, names)
    return Hooks(names["callbacks"], names["model"], names["optimizer"], 9), names


def test_variables_that_hooks_use_go_with_them() -> None:
    hooks, here = script()
    joined, there = script()
    there["place"] = "there"
    for epoch in range(3):
        hooks.epoch_begin(epoch)
        here["optimizer"].step()
        hooks.epoch_end(epoch, save_model=False)
    weights = there["model"].weight.clone()
    joined.load_state_dict(hooks.state_dict())
    assert there["callbacks"][0].on_train_end() == (3, 3, 3, "there")
    assert torch.equal(there["model"].weight, weights)
    assert there["optimizer"].param_groups[0]["lr"] == 1.0, "is brought with the optimizer"
    joined.epoch_begin(3)
    assert there["callbacks"][1].seen == 4
    assert "unknown" not in there


def test_one_that_joins_need_not_have_the_same_variables() -> None:
    hooks, here = script()
    joined, there = script()
    here["count"] = 7
    hooks.train_begin()
    del there["scheduler"], there["count"]
    joined.load_state_dict(hooks.state_dict())
    assert there["count"] == 7


def test_the_state_is_that_of_the_last_hook() -> None:
    callback = Counting()
    hooks, _ = made(callback)
    hooks.epoch_begin(0)
    state = hooks.state_dict()
    callback.factor = 3.0
    assert hooks.state_dict() == state
    hooks.epoch_end(0, save_model=False)
    assert hooks.state_dict() != state
